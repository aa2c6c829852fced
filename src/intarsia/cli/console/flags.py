"""The flags that every command takes; read before the command line is parsed: its errors obey them too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Self

_WORDS = frozenset({"--json", "--quiet", "-q", "--debug"})


@dataclass(frozen=True, slots=True)
class Flags:
    """How to present what happens.

    Attributes:
        json: Print one JSON document on stdout and nothing else there.
        quiet: No progress and no notes.
        debug: Show the traceback of an error.
    """

    json: bool = False
    quiet: bool = False
    debug: bool = False

    @classmethod
    def split(cls, arguments: Sequence[str]) -> tuple[Self, list[str]]:
        """The flags of a command line, which may stand anywhere before a "--", and its other arguments."""
        before = list(takewhile(lambda argument: argument != "--", arguments))
        given = set(before)
        flags = cls("--json" in given, bool(given & {"--quiet", "-q"}), "--debug" in given)
        rest = [argument for argument in before if argument not in _WORDS]
        return flags, [*rest, *arguments[len(before) :]]
