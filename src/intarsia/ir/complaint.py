"""Complaints about a program, and the program's text with each of them in place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir.expr import Expr
from intarsia.ir.listing import Listing
from intarsia.ir.module import IRModule
from intarsia.ir.printer import list_module
from intarsia.support.errors import VerifyError

_MOST_COMPLAINTS: Final = 20
_MOST_LINES: Final = 200  # of a program that is shown whole
_AROUND: Final = 3  # lines shown before and after each complaint in a longer one


@dataclass(frozen=True, slots=True, eq=False)
class Complaint:
    """A rule that is broken.

    Attributes:
        owner: Name of the global function.
        at: Expression at the fault; in a loop function, the number of the statement
            (`loop_walk.Visit`), or `loop_printer.HEAD`.
        text: The complaint.
        mentions: An expression named at the end of the text, or None.
    """

    owner: str
    at: Expr | int
    text: str
    mentions: Expr | None = None


def verify_error(mod: IRModule, complaints: Sequence[Complaint]) -> VerifyError:
    """The error that shows a program with its complaints."""
    listing = Listing()
    list_module(mod, listing)
    below: dict[int, list[str]] = defaultdict(list)
    for complaint in complaints[:_MOST_COMPLAINTS]:
        line = _line_of(complaint, listing)
        below[line].append(_line(complaint, listing, line))
    count = len(complaints)
    title = f"the program breaks the rules of the language in {count} place{'' if count == 1 else 's'}"
    if count > _MOST_COMPLAINTS:
        title += f" (the first {_MOST_COMPLAINTS} are shown)"
    return VerifyError("\n".join([f"{title}:", *_annotated(listing.lines, below)]))


def _line_of(complaint: Complaint, listing: Listing) -> int:
    if isinstance(complaint.at, int):
        return listing.statement_line[complaint.owner, complaint.at]
    return listing.line_of[complaint.owner, complaint.at]


def _line(complaint: Complaint, listing: Listing, line: int) -> str:
    written = listing.lines[line]
    indent = written[: len(written) - len(written.lstrip())]
    name = ""
    if complaint.mentions is not None:
        name = " " + listing.name_of.get((complaint.owner, complaint.mentions), "an expression")
    return f"{indent}// ^ {complaint.text}{name}"


def _annotated(lines: list[str], below: dict[int, list[str]]) -> list[str]:
    shown = range(len(lines))
    kept: Sequence[int] = shown
    if len(lines) > _MOST_LINES:
        near = {near for line in below for near in range(line - _AROUND, line + _AROUND + 1)}
        kept = sorted(near.intersection(shown))
    text: list[str] = []
    expected = 0
    for line in kept:
        if line != expected:
            text.append("...")
        text += [lines[line], *below.get(line, ())]
        expected = line + 1
    return text if expected == len(lines) else [*text, "..."]
