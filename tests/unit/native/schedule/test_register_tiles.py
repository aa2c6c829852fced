"""Tiles fit the registers, and the image."""

import pytest

from intarsia.native.schedule.register_tiles import PixelTile, pixel_tile


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("columns", [1, 2, 5, 7, 13, 14, 27, 55, 56, 112])
@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5, 32])
@pytest.mark.parametrize("registers", [16, 32])
def test_a_tile_fits(columns: int, blocks: int, registers: int) -> None:
    rows, pixels, count = pixel_tile(3, columns, blocks, registers - 3, registers - 1)
    assert 1 <= pixels <= columns
    assert 1 <= rows <= 3
    assert rows == 1 or pixels == columns
    assert 1 <= count <= blocks
    assert rows * pixels * count <= registers - 3
    assert (rows * pixels + 1) * count <= registers - 1


def test_sixteen_registers_take_six_pixels_by_two_blocks() -> None:
    assert pixel_tile(54, 54, 4, 13, 15) == PixelTile(1, 6, 2)


def test_short_rows_are_taken_together() -> None:
    assert pixel_tile(8, 7, 32, 29, 31) == PixelTile(2, 7, 2)


@pytest.mark.parametrize("columns", [14, 28, 55, 56, 112])
def test_rows_that_a_tile_divides_have_no_tail(columns: int) -> None:
    assert columns % pixel_tile(columns, columns, 4, 29, 31).pixels == 0
