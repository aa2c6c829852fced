"""Parsing of shapes, `name=1,3,224,224` or `name:1x3x224x224`, and of sizes: `batch=1..8,seq=1..512@log`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.measure.sizes import DimSizes

_HOW: Final = "write name=1,3,224,224 or name:1x3x224x224"
_HOW_SIZES: Final = "write batch=1..8,seq=1..512@log or seq=16:0.5,128:0.4,512:0.1"
_WITH_COMMAS: Final = re.compile(r"(?P<name>.+)=(?P<dims>[^=]*)", re.DOTALL)
_WITH_CROSSES: Final = re.compile(r"(?P<name>.+):(?P<dims>[^:]*)", re.DOTALL)
_CROSSED: Final = re.compile(r"\s*\d+(x\d+)+\s*")
_NEXT_NAME: Final = re.compile(r",(?=[^,=]*=)")
"""The comma before the next name=: other commas stand between sizes."""
_OF_SIZES: Final = re.compile(r"=[^=]*(?:\.\.|\d:)")
"""What only texts about sizes of dimensions have: a range or a share."""


@dataclass(frozen=True, slots=True)
class ShapeWords:
    """What --shape says.

    Attributes:
        shapes: Shapes by input name, or single sizes by name of a dimension.
        dims: Ranges and shares of sizes, by name of a dimension.
    """

    shapes: dict[str, tuple[int, ...]]
    dims: dict[str, DimSizes]


def parse_shape_words(texts: Iterable[str]) -> ShapeWords:
    """Parse shapes of inputs, and sizes of symbolic dimensions.

    Raises:
        UsageError: A text is malformed, or a name is given twice.
    """
    from intarsia.measure.sizes import DimSizes

    dims: dict[str, DimSizes] = {}
    plain: list[str] = []
    for text in texts:
        if not _OF_SIZES.search(text):
            plain.append(text)
            continue
        for entry in _NEXT_NAME.split(text):
            name, _, sizes = entry.rpartition("=")
            name = name.strip()
            if not name:
                raise UsageError(f"--shape {text!r} has sizes without a name", help=_HOW_SIZES)
            if name in dims:
                raise UsageError(f"--shape gives sizes for {name!r} twice")
            dims[name] = DimSizes.read(name, sizes)
    return ShapeWords(parse_shapes(plain), dims)


def parse_shapes(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Parse shapes by input name, or single sizes by name of a dimension; one text may have several.

    Raises:
        UsageError: A shape is malformed, or a name is given twice.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        for entry in _entries(text):
            name, shape = parse_shape(entry)
            if name in shapes:
                raise UsageError(f"--shape gives a shape for {name!r} twice")
            shapes[name] = shape
    return shapes


def _entries(text: str) -> list[str]:
    """Return the entries of a text such as batch=8,seq=128; a comma before the first = belongs to a name."""
    entries = _NEXT_NAME.split(text)
    return entries if "=" in entries[0] else [text]


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
    dims = match["dims"].split("x" if _CROSSED.fullmatch(match["dims"]) else separator)
    return match["name"].strip(), tuple(_dim(dim.strip(), text) for dim in dims)


def _dim(dim: str, text: str) -> int:
    if not (dim.isascii() and dim.isdigit()):
        what = "an empty dimension" if not dim else f"the dimension {dim!r}"
        raise UsageError(f"--shape {text!r} has {what}, expected whole numbers of 0 or more", help=_HOW)
    return int(dim)
