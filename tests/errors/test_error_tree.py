"""The list of errors in `intarsia.support.errors` names every one, below the one it is a kind of."""

from __future__ import annotations

import re
from pathlib import Path

import intarsia
from intarsia.support import errors

LINE = re.compile(r"^ {4}([│ ]*)[├└]── (\w+)", re.MULTILINE)
CLASS = re.compile(r"^class (\w+)\((\w+)[,)]", re.MULTILINE)


def listed() -> dict[str, str]:
    """Each error of the list with the one it stands below."""
    found, above = {}, {-1: "IntarsiaError"}
    for indent, name in LINE.findall(errors.__doc__ or ""):
        depth = len(indent) // 4
        above[depth] = name
        found[name] = above[depth - 1]
    return found


def defined() -> dict[str, str]:
    """Each error in the source with its base."""
    sources = Path(intarsia.__file__).parent.rglob("*.py")
    bases = dict(match for path in sources for match in CLASS.findall(path.read_text()))
    found, size = {"IntarsiaError"}, 0
    while size < len(found):
        size = len(found)
        found |= {name for name, base in bases.items() if base in found}
    return {name: bases[name] for name in found - {"IntarsiaError"}}


def test_the_list_of_errors_is_complete() -> None:
    assert "DatabaseError" in defined()
    assert listed() == defined()
