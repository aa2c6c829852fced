"""Regions for images of any size as data: what is kept in memory and in artifacts.

The numbers that kernels are given, and where arrays begin, are polynomials of the sizes of a call. The memory
of images is planned for the sizes of a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.native.execution.size_table import (
    LAST,
    REST,
    Entry,
    Grid,
    Linear,
    Pixels,
    Polynomial,
    Quotient,
    SizeTable,
    Tiles,
)
from intarsia.runtime.bounded_json import parse_json
from intarsia.runtime.json_record import Record, as_count, as_list
from intarsia.runtime.kernel import Array
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.errors import ArtifactError, ExecutionError
from intarsia.toolchain.native.blob import read_blob, write_blob
from intarsia.toolchain.native.region import ArgumentKind, NativeRegion

_LINE: Final = re.compile(rb'\{"images":[^\n]{0,4194304}\n')
_WHERE: Final = "native kernels of images"
_MOST_NUMBER: Final = 1 << 52


@dataclass(frozen=True, slots=True)
class Storage:
    """Memory of images.

    Attributes:
        size: Size in bytes.
        first: The first call that writes it.
        last: The last call that reads it.
    """

    size: Polynomial
    first: int
    last: int


@dataclass(frozen=True, slots=True, eq=False)
class ImageRegion:
    """A compiled region for images of any size.

    Attributes:
        table: The extents.
        numbers: Values of the first constants of the region.
        places: Storage and offset in bytes of each argument in the arena; its number is a multiple of 64.
        storages: The storages.
        params: Shape of each parameter.
        results: Shape of each result.
        equal: Pairs of extents that have to be equal.
        positive: Extents that have to be 1 or more.
        region: The kernels, with ports of any shape.
    """

    table: SizeTable
    numbers: tuple[Polynomial, ...]
    places: tuple[tuple[int, Polynomial], ...]
    storages: tuple[Storage, ...]
    params: tuple[tuple[Linear, ...], ...]
    results: tuple[tuple[Linear, ...], ...]
    equal: tuple[tuple[Linear, Linear], ...]
    positive: tuple[Linear, ...]
    region: NativeRegion

    def sizes_of(self, shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
        """Return the sizes of a call, given the shapes of its arrays.

        Raises:
            ExecutionError: Two of them say different ones.
        """
        given: list[set[int]] = [set() for _ in range(self.table.sizes)]
        for dims, shape in zip(self.params, shapes, strict=True):
            for (_, terms), extent in zip(dims, shape, strict=False):
                for position, _ in terms:
                    given[position].add(extent)
        for found in given:
            if len(found) != 1:
                raise ExecutionError(f"the parameters have sizes of {sorted(found)}, expected one size")
        return tuple(item.pop() for item in given)


def is_image_blob(blob: memoryview) -> bool:
    """Return whether bytes are those of a region for images of any size."""
    return _LINE.match(blob) is not None


def write_image_blob(whole: ImageRegion) -> bytes:
    """Return the bytes of a region: a line of JSON, then those of its kernels."""
    head = {
        "images": whole.table.sizes,
        "entries": [_entry_record(entry) for entry in whole.table.entries],
        "numbers": whole.numbers,
        "places": whole.places,
        "storages": [[item.size, item.first, item.last] for item in whole.storages],
        "params": whole.params,
        "results": whole.results,
        "equal": whole.equal,
        "positive": whole.positive,
    }
    line = json.dumps(head, separators=(",", ":")).encode() + b"\n"
    return line + b"\0" * (-len(line) % ALIGNMENT) + write_blob(whole.region)


def _entry_record(entry: Entry) -> list[object]:
    if isinstance(entry, Quotient):
        return [entry.dividend, entry.divisor]
    if isinstance(entry, Grid):
        return [entry.columns, entry.counts, entry.at, entry.part, entry.rows, entry.tile, entry.extra]
    if isinstance(entry, Pixels):
        return [entry.columns, entry.counts, entry.at, entry.part, entry.rows, entry.tile, entry.least, 1]
    return [entry.columns, entry.widths, entry.at, entry.part]


def read_image_blob(blob: memoryview, weights: Mapping[str, Array]) -> ImageRegion:
    """Return the region whose bytes these are.

    Args:
        blob: Bytes that `write_image_blob` wrote; they must not change while the region is used.
        weights: Weights of the source.

    Raises:
        ArtifactError: They are damaged, of another version, or for another CPU.
    """
    line = _LINE.match(blob)
    if line is None:
        raise ArtifactError(f"damaged {_WHERE}: no line of JSON")
    head = Record(parse_json(line[0], _WHERE), _WHERE)
    region = read_blob(blob[line.end() + -line.end() % ALIGNMENT :], weights)
    table = SizeTable(as_count(head.get("images"), _WHERE), tuple(head.read_list("entries", _entry)))
    whole = ImageRegion(
        table,
        tuple(head.read_list("numbers", _polynomial)),
        tuple(head.read_list("places", _place)),
        tuple(head.read_list("storages", _storage)),
        tuple(head.read_list("params", _linears)),
        tuple(head.read_list("results", _linears)),
        tuple((first, second) for first, second in head.read_list("equal", _linears)),
        tuple(head.read_list("positive", _linear)),
        region,
    )
    _check(whole)
    return whole


def _integer(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _MOST_NUMBER:
        raise ArtifactError(f"damaged {where}: {value!r} is no whole number")
    return value


def _pair(value: object, where: str) -> tuple[object, object]:
    items = as_list(value, where)
    if len(items) != 2:
        raise ArtifactError(f"damaged {where}: {value!r} is no pair")
    return items[0], items[1]


def _linear(value: object, where: str) -> Linear:
    const, terms = _pair(value, where)
    pairs = (_pair(item, where) for item in as_list(terms, where))
    return _integer(const, where), tuple(
        (as_count(at, where), _integer(number, where)) for at, number in pairs
    )


def _linears(value: object, where: str) -> tuple[Linear, ...]:
    return tuple(_linear(item, where) for item in as_list(value, where))


def _polynomial(value: object, where: str) -> Polynomial:
    pairs = (_pair(item, where) for item in as_list(value, where))
    return tuple(
        (_integer(number, where), tuple(as_count(at, where) for at in as_list(positions, where)))
        for number, positions in pairs
    )


def _place(value: object, where: str) -> tuple[int, Polynomial]:
    storage, begin = _pair(value, where)
    return as_count(storage, where), _polynomial(begin, where)


def _storage(value: object, where: str) -> Storage:
    items = as_list(value, where)
    if len(items) != 3:
        raise ArtifactError(f"damaged {where}: {value!r} is no memory")
    return Storage(_polynomial(items[0], where), as_count(items[1], where), as_count(items[2], where))


def _entry(value: object, where: str) -> Entry:
    items = as_list(value, where)
    if len(items) == 2:
        divisor = as_count(items[1], where)
        if divisor < 1:
            raise ArtifactError(f"damaged {where}: a division by {divisor}")
        return Quotient(_linear(items[0], where), divisor)
    if len(items) not in (4, 7, 8):
        raise ArtifactError(f"damaged {where}: {value!r} is no number")
    widths = tuple(as_count(item, where) for item in as_list(items[1], where))
    columns, at, part, *of_grid = (as_count(item, where) for item in (items[0], *items[2:]))
    if (
        not widths
        or widths[-1] < 1
        or sorted(widths, reverse=True) != list(widths)
        or at >= len(widths)
        or part > (REST if len(items) > 7 else LAST)
        or (len(items) == 7 and not of_grid[1])
    ):
        raise ArtifactError(f"damaged {where}: tiles of {widths!r}")
    if len(items) > 7:
        rows, tile, least, _ = of_grid
        return Pixels(rows, columns, tile, least, widths, at, part)
    if of_grid:
        rows, tile, extra = of_grid
        return Grid(rows, columns, tile, widths, extra, at, part)
    return Tiles(columns, widths, at, part)


def _check(whole: ImageRegion) -> None:
    """Refuse a region whose parts do not fit each other.

    Raises:
        ArtifactError: They do not.
    """
    table, region = whole.table, whole.region
    count = table.sizes + len(table.entries)
    for number, entry in enumerate(table.entries, table.sizes):
        if any(at >= number for at in entry.positions):
            raise ArtifactError(f"damaged {_WHERE}: a number of a later one")
    linears = [*(item for shape in (*whole.params, *whole.results) for item in shape), *whole.positive]
    linears += [item for pair in whole.equal for item in pair]
    polynomials = [
        *whole.numbers,
        *(begin for _, begin in whole.places),
        *(item.size for item in whole.storages),
    ]
    positions = [at for _, terms in linears for at, _ in terms]
    positions += [at for polynomial in polynomials for _, factors in polynomial for at in factors]
    if any(at >= count for at in positions):
        raise ArtifactError(f"damaged {_WHERE}: a number that there is not")
    if any(storage >= len(whole.storages) for storage, _ in whole.places):
        raise ArtifactError(f"damaged {_WHERE}: memory that there is not")
    if len(whole.params) != len(region.params) or len(whole.results) != len(region.results):
        raise ArtifactError(f"damaged {_WHERE}: {len(whole.params)} parameters")
    given = {at for shape in whole.params for _, terms in shape for at, _ in terms}
    if given != set(range(table.sizes)):
        raise ArtifactError(f"damaged {_WHERE}: a size that no parameter has")
    _check_arguments(whole)


def _check_arguments(whole: ImageRegion) -> None:
    region, count = whole.region, len(whole.numbers)
    numbers = [constant.array for constant in region.constants[:count]]
    if len(numbers) != count or any(item.shape or item.dtype != np.int64 for item in numbers):
        raise ArtifactError(f"damaged {_WHERE}: no number")
    if region.counted or region.checks or region.copies:
        raise ArtifactError(f"damaged {_WHERE}: they count rows")
    for call in region.calls:
        for argument in call.arguments:
            if argument.kind is ArgumentKind.ARENA:
                place, rest = divmod(argument.number, ALIGNMENT)
                if rest or place >= len(whole.places):
                    raise ArtifactError(f"damaged {_WHERE}: memory that there is not")
