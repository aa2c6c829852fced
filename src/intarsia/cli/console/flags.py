"""The flags of every command, read before the command line is parsed, as its errors depend on them too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Self

_WORDS = frozenset({"--json", "--quiet", "-q", "--debug"})


@dataclass(frozen=True, slots=True)
class Flags:
    """Form and amount of the output.

    Attributes:
        json: Whether stdout gets one JSON document only.
        quiet: Whether progress and notes are hidden.
        debug: Whether the traceback of an error is shown.
    """

    json: bool = False
    quiet: bool = False
    debug: bool = False

    @classmethod
    def split(cls, arguments: Sequence[str]) -> tuple[Self, list[str]]:
        """Split a command line into flags, anywhere before a "--", and other arguments."""
        before = list(takewhile(lambda argument: argument != "--", arguments))
        given = set(before)
        flags = cls("--json" in given, bool(given & {"--quiet", "-q"}), "--debug" in given)
        rest = [argument for argument in before if argument not in _WORDS]
        return flags, [*rest, *arguments[len(before) :]]
