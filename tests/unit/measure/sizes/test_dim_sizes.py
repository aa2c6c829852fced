"""Sizes of a dimension as users write them."""

from __future__ import annotations

import pytest

from intarsia.ir import DimRange
from intarsia.measure.sizes import DimSizes
from intarsia.measure.sizes.dim_sizes import SizesArgument
from intarsia.support.errors import UsageError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (8, DimSizes(DimRange(8, 8))),
        ("8", DimSizes(DimRange(8, 8), weights=((8, 1.0),))),
        ((1, 8), DimSizes(DimRange(1, 8))),
        ("1..8", DimSizes(DimRange(1, 8))),
        ("1..512@log", DimSizes(DimRange(1, 512), is_log=True)),
        ("32..640/32", DimSizes(DimRange(32, 640), multiple=32)),
        ("32..640/32@log", DimSizes(DimRange(32, 640), multiple=32, is_log=True)),
        ("16:1,64:3", DimSizes(DimRange(16, 64), weights=((16, 0.25), (64, 0.75)))),
        ({64: 3, 16: 1}, DimSizes(DimRange(16, 64), weights=((16, 0.25), (64, 0.75)))),
        ("16,64", DimSizes(DimRange(16, 64), weights=((16, 0.5), (64, 0.5)))),
    ],
)
def test_what_is_accepted(value: SizesArgument, expected: DimSizes) -> None:
    assert DimSizes.read("n", value) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("8..1", "dimension 'n' is to be 8 to 1: there is no such size"),
        ("33..60/32", "dimension 'n' is to be 33 to 60 in multiples of 32: there is no such size"),
        (-1, "dimension 'n' is to be -1 to -1: there is no such size"),
        (True, "dimension 'n' has the sizes True"),
        ({}, "dimension 'n' has the sizes {}"),
        ({-2: 1.0}, "dimension 'n' has the sizes {-2: 1.0}"),
        ({2: 0.0}, "dimension 'n' has a share that is no positive number"),
        ("2:1,2:1", "dimension 'n' has a size twice"),
        ("some", "dimension 'n' has the sizes 'some'"),
        ("1..", "dimension 'n' has the sizes '1..'"),
    ],
)
def test_what_is_refused(value: SizesArgument, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        DimSizes.read("n", value)
    assert caught.value.problem == text
    assert "batch=1..8" in caught.value.help


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1..8", (1, 4, 8)),
        ("1..512", (1, 23, 512)),
        ("2..30", (2, 16, 30)),
        ("2..30@log", (2, 8, 30)),
        ("64..320/32", (64, 192, 320)),
        ("7..9/8", (8,)),
        ("0..4", (0, 2, 4)),
        ("5", (5,)),
    ],
)
def test_timed_sizes_are_spread_over_the_range(text: str, sizes: tuple[int, ...]) -> None:
    timed = DimSizes.read("n", text).timed()
    assert tuple(size for size, _ in timed) == sizes
    assert sum(share for _, share in timed) == pytest.approx(1.0)


def test_checked_sizes_are_borders_within_the_range() -> None:
    assert list(DimSizes.read("n", "1..9").checked())[:5] == [1, 9, 2, 2, 3]
    assert set(DimSizes.read("n", "1..9").checked()) == {1, 2, 3, 7, 8, 9}
    assert set(DimSizes.read("n", "32..96/32").checked()) == {32, 96}
