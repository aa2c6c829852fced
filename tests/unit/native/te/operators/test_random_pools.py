"""Pools of random shapes against their definition: onnx's own has its faults where pads differ."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.te.operators.checked_call import Array, check, make_call
from tests.unit.native.te.operators.sliding import Slide, attributes, seeded, slides


@settings(max_examples=examples(80, quick=6), deadline=None)
@given(
    name=st.sampled_from(["MaxPool", "AveragePool", "LpPool"]),
    found=slides(),
    ceil_mode=st.booleans(),
    with_padding=st.booleans(),
    p=st.integers(1, 3),
)
def test_pools(name: str, found: list[Slide], ceil_mode: bool, with_padding: bool, p: int) -> None:
    x = seeded((2, 2, *(slide.extent for slide in found)))
    attrs = {**attributes(found), "kernel_shape": tuple(slide.taps for slide in found)}
    attrs["ceil_mode"] = int(ceil_mode)
    if name == "AveragePool":
        attrs["count_include_pad"] = int(with_padding)
    elif name == "LpPool":
        attrs["p"] = p
    counts = tuple(slide.count(ceil_mode) for slide in found)
    result = np.zeros((2, 2, *counts), np.float64)
    for position in np.ndindex(*counts):
        elements, paddings = _window(x, found, position)
        assume(elements.shape[-1] or name == "LpPool")
        result[(..., *position)] = _pooled(name, elements, paddings if with_padding else 0, p)
    check(make_call(name, x, **attrs), [result.astype(np.float32)], length=27)


def _window(x: Array, found: list[Slide], position: tuple[int, ...]) -> tuple[Array, int]:
    """The elements of a window, flattened, and how much padding is in it."""
    places = [
        [at * slide.stride - slide.pads[0] + tap * slide.dilation for tap in range(slide.taps)]
        for at, slide in zip(position, found, strict=True)
    ]
    elements, paddings = [], 0
    for place in itertools.product(*places):
        if all(0 <= each < slide.extent for each, slide in zip(place, found, strict=True)):
            elements.append(x[_at(place)].astype(np.float64))
        elif all(each < slide.extent + slide.pads[1] for each, slide in zip(place, found, strict=True)):
            paddings += 1
    return np.stack(elements, -1) if elements else np.zeros((*x.shape[:2], 0)), paddings


def _at(place: tuple[int, ...]) -> Any:
    return (slice(None), slice(None), *place)


def _pooled(name: str, elements: Array, paddings: int, p: int) -> Array:
    match name:
        case "MaxPool":
            return np.asarray(elements.max(-1))
        case "AveragePool":
            return np.asarray(elements.sum(-1) / (elements.shape[-1] + paddings))
        case _:
            return np.asarray((np.abs(elements) ** p).sum(-1) ** (1 / p))


@settings(max_examples=examples(50, quick=6), deadline=None)
@given(found=slides(), storage_order=st.integers(0, 1), dtype=st.sampled_from(["float32", "int8", "uint8"]))
def test_positions_of_pooled_elements(found: list[Slide], storage_order: int, dtype: str) -> None:
    extents = tuple(slide.extent for slide in found)
    x = np.random.default_rng(3).integers(0, 3, (2, 2, *extents)).astype(dtype)
    counts = tuple(slide.count() for slide in found)
    largest, places = np.zeros((2, 2, *counts), dtype), np.zeros((2, 2, *counts), np.int64)
    order: tuple[int, ...] = tuple(range(len(extents)))
    turned = np.arange(math.prod(extents)).reshape(extents[::-1]).transpose(order[::-1])
    numbers = turned if storage_order else np.arange(math.prod(extents)).reshape(extents)
    for n, c, *position in np.ndindex(2, 2, *counts):
        best = _first_largest(x[n, c], found, tuple(position))
        assume(best is not None)
        assert best is not None
        largest[(n, c, *position)] = x[(n, c, *best)]
        places[(n, c, *position)] = (n * 2 + c) * math.prod(extents) + numbers[best]
    attrs = {**attributes(found), "kernel_shape": tuple(slide.taps for slide in found)}
    check(make_call("MaxPool", x, outputs=2, storage_order=storage_order, **attrs), [largest, places])


def _first_largest(x: Array, found: list[Slide], position: tuple[int, ...]) -> tuple[int, ...] | None:
    places = [
        [at * slide.stride - slide.pads[0] + tap * slide.dilation for tap in range(slide.taps)]
        for at, slide in zip(position, found, strict=True)
    ]
    inside = [
        place
        for place in itertools.product(*places)
        if all(0 <= each < slide.extent for each, slide in zip(place, found, strict=True))
    ]
    return max(inside, key=lambda place: x[place]) if inside else None


@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 2, 4, 3), (2, 1, 3, 1, 2)])
def test_global_pools(shape: tuple[int, ...]) -> None:
    x, axes = seeded(shape), tuple(range(2, len(shape)))
    means = x.astype(np.float64).mean(axes, keepdims=True).astype(np.float32)
    check(make_call("GlobalAveragePool", x), [means], length=math.prod(shape[2:]))
    check(make_call("GlobalMaxPool", x), [x.max(axes, keepdims=True)])


@pytest.mark.parametrize("p", [1, 2, 3])
def test_global_lp_pool(p: int) -> None:
    x = seeded((2, 3, 4, 5))
    expected = (np.abs(x.astype(np.float64)) ** p).sum((2, 3), keepdims=True) ** (1 / p)
    check(make_call("GlobalLpPool", x, p=p), [expected.astype(np.float32)], length=20)
