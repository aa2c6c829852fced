"""How devices are named in plans and messages: "cpu:0", "mock:1"."""

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
        kind: As in targets: "cpu", "cuda", "mock".
        number: Which of its kind, 0 or more.
    """

    kind: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The name that a text is.

        Raises:
            UsageError: It is none.
        """
        found = _NAME.fullmatch(text)
        if found is None:
            raise UsageError(f'{text!r} is not a device; expected a kind and a number, such as "cpu:0"')
        return cls(found[1], int(found[2]))

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"
