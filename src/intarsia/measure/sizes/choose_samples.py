"""Choose few sizes of all dimensions together: those that are timed, and more that are checked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final

from intarsia.measure.sizes.dim_sizes import DimSizes
from intarsia.measure.sizes.size_sample import SizeSample

MOST_TIMED: Final = 4
"""Timed samples: each adds its own latency to every measurement."""

MOST_CHECKED: Final = 6
"""Samples that are checked only: each costs a reference result."""


def choose_samples(dims: Mapping[str, DimSizes]) -> tuple[SizeSample, ...]:
    """Return samples of the sizes: those with a weight first, of them the one in the middle of all.

    Where shares are given, the most frequent combinations are timed, as if dimensions were independent.
    Otherwise all dimensions are small, in the middle, or large together: sizes of one model grow together
    more often than not, and what one of them does alone is checked.

    Args:
        dims: Sizes by name of the dimension.
    """
    if not dims:
        return ()
    timed = _combinations(dims) if any(item.weights for item in dims.values()) else _together(dims)
    total = sum(sample.weight for sample in timed)
    are_named = all(item.weights for item in dims.values())
    timed = [SizeSample(sample.sizes, sample.weight / total, are_named) for sample in timed]
    middle = len(timed) // 2
    ordered = [timed[middle], *timed[:middle], *timed[middle + 1 :]]
    keys = {sample.key for sample in ordered}
    checked: list[SizeSample] = []
    for sample in _borders(dims, ordered[0]):
        if sample.key not in keys and len(checked) < MOST_CHECKED:
            keys.add(sample.key)
            checked.append(sample)
    return (*ordered, *checked)


def _combinations(dims: Mapping[str, DimSizes]) -> list[SizeSample]:
    """Return the most frequent combinations of sizes, by the product of their shares; small ones first."""
    # Of each dimension only the most frequent sizes can be among the most frequent combinations.
    sizes = [sorted(item.timed(), key=lambda pair: -pair[1])[:MOST_TIMED] for item in dims.values()]
    combined = [
        SizeSample(
            dict(zip(dims, (size for size, _ in pairs), strict=True)),
            math.prod(share for _, share in pairs),
        )
        for pairs in product(*sizes)
    ]
    frequent = sorted(combined, key=lambda sample: -sample.weight)[:MOST_TIMED]
    return sorted(frequent, key=lambda sample: math.prod(sample.sizes.values()))


def _together(dims: Mapping[str, DimSizes]) -> list[SizeSample]:
    """Return samples in which all dimensions are small, in the middle, or large."""
    sizes = {name: [size for size, _ in item.timed()] for name, item in dims.items()}
    count = max(map(len, sizes.values()))
    return [
        SizeSample({name: _at(items, number, count) for name, items in sizes.items()}, 1.0)
        for number in range(count)
    ]


def _at(sizes: list[int], number: int, count: int) -> int:
    """Return the size at a position of `count` positions that are spread over the sizes."""
    return sizes[round(number * (len(sizes) - 1) / max(1, count - 1))]


def _borders(dims: Mapping[str, DimSizes], usual: SizeSample) -> Iterator[SizeSample]:
    """Yield samples with one dimension at a border; dimensions take turns, the others are as usual."""
    borders = {name: list(item.checked()) for name, item in dims.items()}
    for number in range(max(map(len, borders.values()), default=0)):
        for name, sizes in borders.items():
            if number < len(sizes):
                yield SizeSample({**usual.sizes, name: sizes[number]})
