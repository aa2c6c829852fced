"""Parsing of shapes: `name=1,3,224,224` or `name:1x3x224x224`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from intarsia.support.errors import UsageError

_HOW: Final = "write name=1,3,224,224 or name:1x3x224x224"
_WITH_COMMAS: Final = re.compile(r"(?P<name>.+)=(?P<dims>[^=]*)", re.DOTALL)
_WITH_CROSSES: Final = re.compile(r"(?P<name>.+):(?P<dims>[^:]*)", re.DOTALL)


def parse_shapes(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Parse shapes by input name.

    Raises:
        UsageError: A shape is malformed, or an input is named twice.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, shape = parse_shape(text)
        if name in shapes:
            raise UsageError(f"--shape gives a shape for {name!r} twice")
        shapes[name] = shape
    return shapes


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Parse a name with a shape; the name may contain colons, as in "input:0=1,3".

    Raises:
        UsageError: The text is malformed; the message names the dimension.
    """
    separator = ","
    match = _WITH_COMMAS.fullmatch(text)
    if match is None:
        separator, match = "x", _WITH_CROSSES.fullmatch(text)
    if match is None:
        raise UsageError(f"--shape {text!r} has no name with a shape", help=_HOW)
    dims = match["dims"].split(separator)
    return match["name"].strip(), tuple(_dim(dim.strip(), text) for dim in dims)


def _dim(dim: str, text: str) -> int:
    if not (dim.isascii() and dim.isdigit()):
        what = "an empty dimension" if not dim else f"the dimension {dim!r}"
        raise UsageError(f"--shape {text!r} has {what}, expected whole numbers of 0 or more", help=_HOW)
    return int(dim)
