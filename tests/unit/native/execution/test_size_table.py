"""Numbers that are computed from the sizes of a call."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import pytest

from intarsia.native.execution.polynomial_table import PolynomialTable, of_linear
from intarsia.native.execution.size_reader import SizeReader
from intarsia.native.execution.size_table import (
    BEGIN,
    COUNT,
    LAST,
    REST,
    Grid,
    Pixels,
    Polynomial,
    Quotient,
    SizeTableBuilder,
    Tiles,
    added,
    constant,
    linear_value,
    product,
    total,
)


def polynomial_value(polynomial: Polynomial, values: Sequence[int]) -> int:
    return sum(number * prod(values[at] for at in positions) for number, positions in polynomial)


WIDTHS = ((8, 7, 6, 5, 4, 2, 1), (8, 4, 2, 1), (12, 8), (20, 1), (3,), (1,))


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 31])
def test_quotients_are_rounded_down_and_kept_once(size: int) -> None:
    builder = SizeTableBuilder(1)
    h = builder.size(0)
    once = added(builder.quotient(added(h, constant(-1)), 2), constant(1))
    again = builder.quotient(added(h, constant(1)), 2)
    twice = builder.quotient(added(constant(6), added(h, h)), 2)
    assert once == again
    assert twice == added(h, constant(3))
    table = builder.table()
    assert len(table.entries) == 1
    assert linear_value(once, SizeReader(table).values([size])) == (size - 1) // 2 + 1


def test_products_and_sums_of_extents() -> None:
    builder = SizeTableBuilder(2)
    h, w = builder.size(0), builder.size(1)
    area = product(added(h, constant(2)), added(w, constant(3)), constant(4))
    values = SizeReader(builder.table()).values([5, 7])
    assert polynomial_value(area, values) == 7 * 10 * 4
    assert polynomial_value(total(area, product(constant(-280)), product(h)), values) == 5


def test_many_polynomials_are_evaluated_together() -> None:
    h, w = (SizeTableBuilder(2).size(position) for position in (0, 1))
    linear = added(constant(-3), h, 2)
    polynomials = [product(h, w, linear), (), product(constant(7)), of_linear(linear), of_linear(constant(0))]
    for values in ((5, 7), (1, 1), (1 << 20, 3)):
        table = PolynomialTable(polynomials, 2)
        right = [polynomial_value(polynomial, values) for polynomial in polynomials]
        assert table.values(values).tolist() == right
        np.testing.assert_allclose(table.estimates(values), right, rtol=1e-12)
    assert PolynomialTable([], 2).values((1, 2)).size == 0
    assert PolynomialTable([product(h, h, h, h)], 2).estimates((1 << 20, 1)).tolist() == [2.0**80]


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("columns", [*range(1, 32), 97, 224])
def test_tiles_cover_all_columns_and_no_others(columns: int, widths: tuple[int, ...]) -> None:
    covered: set[int] = set()
    computed = 0
    for at, width in enumerate(widths):
        count, begin, last = (
            Tiles(0, widths, at, part).numbers((columns,))[at][part] for part in (COUNT, BEGIN, LAST)
        )
        for tile in range(count):
            first = min(begin + tile * width, last)
            covered |= set(range(first, first + width))
            computed += width
    assert covered == (set(range(columns)) if columns >= widths[-1] else set())
    assert computed < columns + widths[0]


@pytest.mark.parametrize(
    ("columns", "counts"),
    [
        (6, [0, 0, 1, 0, 0, 0, 0]),
        (9, [0, 0, 0, 1, 1, 0, 0]),
        (12, [0, 0, 2, 0, 0, 0, 0]),
        (13, [0, 1, 1, 0, 0, 0, 0]),
        (15, [1, 1, 0, 0, 0, 0, 0]),
        (28, [0, 4, 0, 0, 0, 0, 0]),
        (49, [0, 7, 0, 0, 0, 0, 0]),
        (1000, [125, 0, 0, 0, 0, 0, 0]),
        (1007, [125, 1, 0, 0, 0, 0, 0]),
    ],
)
def test_a_row_of_tiles_computes_few_columns_twice(columns: int, counts: list[int]) -> None:
    widths = WIDTHS[0]
    numbers = Tiles(0, widths, 0, COUNT).numbers((columns,))
    assert [of_width[COUNT] for of_width in numbers] == counts


def covered(number: Callable[[int, int], int], counts: Sequence[int]) -> set[int]:
    """Return the tiles that the chunks of a grid compute."""
    last = number(0, LAST)
    return {
        min(number(at, BEGIN) + chunk * count + tile, last)
        for at, count in enumerate(counts)
        for chunk in range(number(at, COUNT))
        for tile in range(count)
    }


def number_of(entry: Grid | Pixels, rows: int, columns: int) -> Callable[[int, int], int]:
    """Return the function from the position of a count, and a part, to the number."""
    numbers = entry.numbers((rows, columns))
    return lambda at, part: numbers[at][part]


@pytest.mark.parametrize("rows", range(1, 40))
@pytest.mark.parametrize("columns", [1, 3, 4, 7, 8, 30])
def test_a_grid_of_tiles_is_computed_by_tiles_or_by_pixels(rows: int, columns: int) -> None:
    tiles, pixels = (24, 8, 4), (16, 8, 6, 5, 4)
    by_tiles = covered(number_of(Grid(0, 1, 4, tiles, 3, 0, COUNT), rows, columns), tiles)
    by_pixels = covered(number_of(Pixels(0, 1, 4, 9, pixels, 0, COUNT), rows, columns), pixels)
    count = -(-rows // 4) * -(-columns // 4)
    is_small = rows < 4 or columns < 4 or count < 4
    assert by_tiles == set(range(0 if is_small else count))
    assert by_pixels == set(range(rows * columns if is_small else 0))


@pytest.mark.parametrize("rows", [1, 2, 9, 33])
@pytest.mark.parametrize("columns", [1, 3, 9, 10, 30])
def test_an_image_of_few_columns_is_computed_by_pixels_and_others_by_rows(rows: int, columns: int) -> None:
    pixels = 16, 8, 6, 5, 4
    number = number_of(Pixels(0, 1, 0, 10, pixels, 0, COUNT), rows, columns)
    assert covered(number, pixels) == set(range(rows * columns if columns < 10 else 0))
    assert number(0, REST) == (0 if columns < 10 else rows)


@pytest.mark.parametrize("seed", range(4))
def test_entries_are_evaluated_together_as_one_by_one(seed: int) -> None:
    draw = random.Random(seed)
    builder, linears = SizeTableBuilder(2), [SizeTableBuilder(2).size(position) for position in (0, 1)]
    for _ in range(20):
        both = added(draw.choice(linears), draw.choice(linears))
        linears.append(builder.quotient(both, draw.randrange(1, 4)))
        at, part, widths = draw.randrange(3), draw.choice((COUNT, BEGIN, LAST)), draw.choice(WIDTHS)
        builder.tiles(draw.choice(linears), widths, min(at, len(widths) - 1), part)
        level = draw.choice(linears), draw.choice(linears)
        builder.grid(level, 4, ((24, 8, 4), 3), at, part)
        builder.pixels(level, (draw.choice((0, 4)), 9), (8, 4, 2), at, draw.choice((part, REST)))
    table = builder.table()
    for sizes in ((1, 1), (5, 7), (224, 97)):
        values = list(sizes)
        for entry in table.entries:
            numbers = entry.numbers(values)
            values.append(numbers[0][0] if isinstance(entry, Quotient) else numbers[entry.at][entry.part])
        assert SizeReader(table).values(sizes) == values
