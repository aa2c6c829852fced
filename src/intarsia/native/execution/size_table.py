"""Numbers that are computed from the sizes of a call: extents of images, and what kernels are given.

An extent is a linear form of entries of a table, as `(h + 1) // 2 + 1` is one of the quotient `(h + 1) // 2`.
The first entries of a table are the sizes of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

Linear: TypeAlias = tuple[int, tuple[tuple[int, int], ...]]
"""A constant, and pairs of an entry's position, ascending, and its coefficient, which is not 0."""
Polynomial: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""Pairs of a coefficient and the positions of the entries that it is multiplied by."""


@dataclass(frozen=True, slots=True)
class Quotient:
    """A linear form of earlier entries divided by a positive number, rounded down."""

    dividend: Linear
    divisor: int

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the entries that it reads."""
        return tuple(position for position, _ in self.dividend[1])

    def numbers(self, values: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the number, given the values of earlier entries."""
        return ((linear_value(self.dividend, values) // self.divisor,),)


@dataclass(frozen=True, slots=True)
class Tiles:
    """How tiles of one width cover some columns, as `covering` says.

    The tiles begin at `begin`, `begin + width` ..., but none of them behind `last`: the last one may compute
    columns a second time.

    Attributes:
        columns: Position of the entry with the number of columns.
        widths: Widths for which there is code, descending.
        at: Position of the width.
        part: COUNT, BEGIN or LAST.
    """

    columns: int
    widths: tuple[int, ...]
    at: int
    part: int

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the entries that it reads."""
        return (self.columns,)

    def numbers(self, values: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of each width by part, given the values of earlier entries."""
        return covering(values[self.columns], self.widths)


COUNT, BEGIN, LAST, REST = range(4)


@dataclass(frozen=True, slots=True)
class Grid:
    """How the tiles of a grid are computed by code for some numbers of tiles: by chunks, largest first.

    The last chunk may have tiles behind the last one. Of all choices it is the one with the least cost. A
    small image has no tiles: its pixels are computed one by one.

    Attributes:
        rows: Position of the entry with the number of rows.
        columns: Position of the entry with the number of columns.
        tile: Rows and columns of a tile.
        counts: Numbers of tiles for which there is code, descending.
        extra: Cost of a chunk beside its tiles, in tiles: that of reading weights.
        at: Position of the number of tiles.
        part: COUNT, BEGIN, or LAST for the last tile of all.
    """

    rows: int
    columns: int
    tile: int
    counts: tuple[int, ...]
    extra: int
    at: int
    part: int

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the entries that it reads."""
        return self.rows, self.columns

    def numbers(self, values: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of each number of tiles by part, given the values of earlier entries."""
        rows, columns = values[self.rows], values[self.columns]
        is_small = _has_few_tiles(rows, columns, self.tile)
        tiles = 0 if is_small else -(-rows // self.tile) * -(-columns // self.tile)
        chunks = _chunks(tiles, self.counts, self.extra)
        return tuple((count, begin, tiles - 1) for count, begin in chunks)


@dataclass(frozen=True, slots=True)
class Pixels:
    """How the pixels of a small image are computed by code for some numbers of pixels, as tiles of `Grid`.

    Other images are computed by a grid of tiles, or row by row: they have none of these pixels.

    Attributes:
        rows: Position of the entry with the number of rows.
        columns: Position of the entry with the number of columns.
        tile: Rows and columns of a tile of the grid; 0 for rows.
        least: Number of columns from which images are computed row by row; of no use for a grid.
        counts: Numbers of pixels for which there is code, descending.
        at: Position of the number of pixels.
        part: COUNT, BEGIN, or LAST for the last pixel of all; REST for the number of rows of other images.
    """

    rows: int
    columns: int
    tile: int
    least: int
    counts: tuple[int, ...]
    at: int
    part: int

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the entries that it reads."""
        return self.rows, self.columns

    def numbers(self, values: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of each number of pixels by part, given the values of earlier entries."""
        rows, columns = values[self.rows], values[self.columns]
        is_small = _has_few_tiles(rows, columns, self.tile) if self.tile else columns < self.least
        pixels, rest = (rows * columns, 0) if is_small else (0, rows)
        return tuple((count, begin, pixels - 1, rest) for count, begin in _chunks(pixels, self.counts, 0))


_LEAST_TILES: Final = 4
"""Number of tiles from which an image is computed by a grid: fewer would be computed with as many."""


def _has_few_tiles(rows: int, columns: int, tile: int) -> bool:
    """Return whether an image is too small for a grid of tiles."""
    return min(rows, columns) < tile or -(-rows // tile) * -(-columns // tile) < _LEAST_TILES


Entry: TypeAlias = Quotient | Tiles | Grid | Pixels


@dataclass(frozen=True, slots=True)
class SizeTable:
    """The entries of a table.

    Attributes:
        sizes: Number of sizes of a call, the first entries.
        entries: The entries behind them; each refers to earlier ones.
    """

    sizes: int
    entries: tuple[Entry, ...]


_EXACT_TILES: Final = 8
"""Number of tiles of the widest width for which all choices are compared; others are of that width."""


@lru_cache(maxsize=1024)
def covering(columns: int, widths: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """Return number, begin, and begin of the last one of the tiles of each width that cover some columns.

    Tiles of all widths follow each other, widest first, and none ends behind the last column. Of all such
    choices it is the one with the least cost: columns, and for each tile an eighth of those of the widest
    one. Fewer columns than the narrowest tile has are not covered.

    Args:
        columns: Number of columns.
        widths: Widths for which there is code, descending.
    """
    usable = tuple(width for width in widths if width <= columns)
    counts = dict.fromkeys(widths, 0) | _counts(columns, usable, max(1, widths[0] // 8))
    tiles, begin = [], 0
    for width, count in counts.items():
        tiles.append((count, begin, columns - width))
        begin += count * width
    return tuple(tiles)


@lru_cache(maxsize=1024)
def _chunks(tiles: int, counts: tuple[int, ...], extra: int) -> tuple[tuple[int, int], ...]:
    """Return number and begin of the chunks of each number of tiles; see `Grid`."""
    chunks, begin = [], 0
    for count, number in _counts(tiles, counts, extra).items():
        chunks.append((number, begin))
        begin += number * count
    return tuple(chunks)


def _counts(columns: int, widths: tuple[int, ...], extra: int) -> dict[int, int]:
    """Return the number of tiles of each width in the cheapest covering, which may reach beyond the end.

    Args:
        columns: Number of columns.
        widths: Widths, descending.
        extra: Cost of a tile beside its columns.
    """
    counts = dict.fromkeys(widths, 0)
    if widths:
        counts[widths[0]] = max(0, columns // widths[0] - _EXACT_TILES)
        rest = columns - counts[widths[0]] * widths[0]
        first = _first_tiles(widths, extra)
        while rest > 0:
            width = first[rest]
            counts[width] += 1
            rest -= width
    return counts


@lru_cache(maxsize=64)
def _first_tiles(widths: tuple[int, ...], extra: int) -> tuple[int, ...]:
    """Return the width of a tile of the cheapest covering, by number of columns.

    Of coverings with equal costs it is that of the most equal tiles: narrow ones are slower than they count.

    Args:
        widths: Widths, descending.
        extra: Cost of a tile beside its columns.
    """
    widest = widths[0]
    costs, first = [(0, 0)], [0]
    for columns in range(1, (_EXACT_TILES + 1) * widest):
        behind = ((width, *costs[max(0, columns - width)]) for width in widths)
        *cost, width = min(
            (cost + width + extra, unequal + (widest - width) ** 2, width) for width, cost, unequal in behind
        )
        costs.append((cost[0], cost[1]))
        first.append(width)
    return tuple(first)


def linear_value(linear: Linear, values: Sequence[int]) -> int:
    """Return the value of a linear form."""
    value, terms = linear
    for position, coefficient in terms:
        value += coefficient * values[position]
    return value


def constant(number: int) -> Linear:
    """Return a linear form that is a number."""
    return number, ()


def added(left: Linear, right: Linear, factor: int = 1) -> Linear:
    """Return `left + factor * right`."""
    terms = dict(left[1])
    for position, coefficient in right[1]:
        terms[position] = terms.get(position, 0) + factor * coefficient
    kept = tuple(sorted((position, number) for position, number in terms.items() if number))
    return left[0] + factor * right[0], kept


def product(*factors: Linear) -> Polynomial:
    """Return the product of linear forms."""
    terms: dict[tuple[int, ...], int] = {(): 1}
    for const, linear in factors:
        grown: dict[tuple[int, ...], int] = {}
        for positions, number in terms.items():
            for more, coefficient in (((), const), *(((at,), value) for at, value in linear)):
                key = tuple(sorted((*positions, *more)))
                grown[key] = grown.get(key, 0) + number * coefficient
        terms = grown
    return tuple((number, positions) for positions, number in terms.items() if number)


def total(*summands: Polynomial) -> Polynomial:
    """Return the sum of polynomials."""
    terms: dict[tuple[int, ...], int] = {}
    for summand in summands:
        for number, positions in summand:
            terms[positions] = terms.get(positions, 0) + number
    return tuple((number, positions) for positions, number in terms.items() if number)


class SizeTableBuilder:
    """The entries so far; equal ones are the same.

    Args:
        sizes: Number of sizes of a call.
    """

    def __init__(self, sizes: int) -> None:
        self._sizes = sizes
        self._positions: dict[Entry, int] = {}

    def table(self) -> SizeTable:
        """Return the table."""
        return SizeTable(self._sizes, tuple(self._positions))

    def size(self, position: int) -> Linear:
        """Return a size of a call."""
        return 0, ((position, 1),)

    def quotient(self, dividend: Linear, divisor: int) -> Linear:
        """Return a linear form divided by a positive number, rounded down."""
        const, terms = dividend
        whole = tuple((position, number // divisor) for position, number in terms if number % divisor == 0)
        rest = tuple((position, number) for position, number in terms if number % divisor)
        if not rest:
            return const // divisor, whole
        inner = Quotient((const % divisor, rest), divisor)
        return added((const // divisor, whole), (0, ((self._position(inner), 1),)))

    def is_natural(self, linear: Linear) -> bool:
        """Return whether a linear form is negative for no sizes, of which each is at least 1."""
        const, terms = linear
        least = const
        for position, coefficient in terms:
            if coefficient < 0:
                return False
            if position < self._sizes:
                least += coefficient
            else:
                entry = list(self._positions)[position - self._sizes]
                if not isinstance(entry, Quotient) or not self.is_natural(entry.dividend):
                    return False
        return least >= 0

    def position(self, linear: Linear) -> int:
        """Return the position of an entry that has the value of a linear form."""
        const, terms = linear
        if not const and len(terms) == 1 and terms[0][1] == 1:
            return terms[0][0]
        return self._position(Quotient(linear, 1))

    def tiles(self, columns: Linear, widths: tuple[int, ...], at: int, part: int) -> Polynomial:
        """Return a number of `Tiles`."""
        return ((1, (self._position(Tiles(self.position(columns), widths, at, part)),)),)

    def grid(
        self,
        level: tuple[Linear, Linear],
        tile: int,
        chunks: tuple[tuple[int, ...], int],
        at: int,
        part: int,
    ) -> Polynomial:
        """Return a number of `Grid` for an image with some rows and columns, given its counts and extra."""
        rows, columns = map(self.position, level)
        return ((1, (self._position(Grid(rows, columns, tile, *chunks, at, part)),)),)

    def pixels(
        self,
        level: tuple[Linear, Linear],
        image: tuple[int, int],
        counts: tuple[int, ...],
        at: int,
        part: int,
    ) -> Polynomial:
        """Return a number of `Pixels` for an image with some rows and columns, given its tile and least."""
        rows, columns = map(self.position, level)
        return ((1, (self._position(Pixels(rows, columns, *image, counts, at, part)),)),)

    def _position(self, entry: Entry) -> int:
        return self._sizes + self._positions.setdefault(entry, len(self._positions))
