"""What LLVM says about faulty IR, with the lines that it means."""

from __future__ import annotations

import re
from typing import Final

_AROUND: Final = 2
_MOST_COMPLAINTS: Final = 8
_PLACE: Final = re.compile(r"<string>:(\d+):\d+: error: (.*)")
_NAME: Final = re.compile(r"[%@][\w.$-]+")


def describe_fault(text: str, line: int | None, complaint: str) -> str:
    """A message of a few lines: what is wrong, and the lines of the text around it with their numbers.

    Args:
        text: The IR.
        line: Number of the faulty line, from 1; None to look for it in the complaint.
        complaint: What LLVM says, or we.
    """
    lines = text.splitlines()
    complaints = [part.strip() for part in complaint.splitlines() if part.strip()]
    placed = next((found for part in complaints if (found := _PLACE.match(part))), None)
    if placed:
        line, complaints = int(placed[1]), [placed[2]]
    elif line is None:
        line = _line_that_is_quoted(lines, complaints)
    head = "faulty LLVM IR: " + "; ".join(complaints[:_MOST_COMPLAINTS])
    if line is None or not lines:
        return head
    first, last = max(1, line - _AROUND), min(len(lines), line + _AROUND)
    shown = [
        f"  {'->' if number == line else '  '} {number:5}  {lines[number - 1][:200]}"
        for number in range(first, last + 1)
    ]
    return "\n".join((head, *shown))


def _line_that_is_quoted(lines: list[str], complaints: list[str]) -> int | None:
    """The first line that the verifier's complaint repeats, or that names what it names."""
    stripped = {content.strip(): number for number, content in reversed(list(enumerate(lines, 1)))}
    for part in complaints:
        if part in stripped:
            return stripped[part]
    names = [name for part in complaints for name in _NAME.findall(part)]
    for name in names:
        for number, content in enumerate(lines, 1):
            if name in _NAME.findall(content):
                return number
    return None
