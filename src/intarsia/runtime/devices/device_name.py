"""Names of devices in plans and messages: "cpu:0", "mock:1"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from intarsia.support.errors import UsageError

_NAME: Final = re.compile(r"([a-z]+):([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class DeviceName:
    """Kind and number of a device.

    Attributes:
        kind: Kind of device as in targets: "cpu", "cuda", "mock".
        number: Index among the devices of its kind, 0 or more.
    """

    kind: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a device's name.

        Raises:
            UsageError: The text is not a device name.
        """
        match = _NAME.fullmatch(text)
        if match is None:
            raise UsageError(f'{text!r} is not a device; expected a kind and a number, such as "cpu:0"')
        return cls(match[1], int(match[2]))

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"
