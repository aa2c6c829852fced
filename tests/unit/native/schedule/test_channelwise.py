"""Depthwise convolutions and pools of blocked tensors compute what ONNX's reference does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.emitted_kernels import x86_sets
from tests.emulated_cpus import CPUS
from tests.scheduled_kernels import Array, computed, loops_of, normal, reference, state_of, written_out

from intarsia.ir import DType
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import IfThenElse
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import ComputeAt
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.blocked import blocked_state
from intarsia.native.schedule.blocked_chain import blocked_chain
from intarsia.native.schedule.channelwise import channelwise_choice
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.te.operators.blocked_convolution import depthwise_convolution, pack_depthwise_weight
from intarsia.native.te.operators.blocked_layout import (
    BLOCKED,
    PADDING,
    SHARES_ROWS,
    blocked_array,
    blocked_bias,
    plain_array,
)
from intarsia.native.te.operators.blocked_pooling import (
    blocked_average_pool,
    blocked_global_pool,
    blocked_max_pool,
)
from intarsia.native.te.operators.windows import Window
from intarsia.target.machine_families import family_model

pytestmark = pytest.mark.quick_tests(7, also=["test_average_pool[one-sided-False]"])

# channels, size, taps, stride, dilation, pads
WINDOWS = {
    "whole": (16, (8, 16), 3, 1, 1, (1, 1)),
    "odd": (21, (7, 13), 3, 1, 1, (1, 1)),
    "strided": (16, (9, 11), 3, 2, 1, (1, 1)),
    "five taps": (32, (6, 7), 5, 1, 1, (2, 2)),
    "seven taps": (16, (8, 9), 7, 1, 1, (3, 3)),
    "dilated": (16, (9, 10), 3, 1, 2, (2, 2)),
    "one-sided": (16, (6, 7), 2, 2, 1, (0, 1)),
    "inside": (16, (6, 7), 2, 1, 1, (0, 0)),
}

UNPADDED = ("odd", "strided", "one-sided")
"""Windows whose averages without padding are computed between two edits; `make slow` has those of all."""


def _windows(name: str) -> tuple[Window, ...]:
    _, size, taps, stride, dilation, (begin, end) = WINDOWS[name]
    reach = (taps - 1) * dilation + 1
    return tuple(
        Window(extent, (extent + begin + end - reach) // stride + 1, taps, stride, dilation, begin, end)
        for extent in size
    )


def _attrs(name: str) -> dict[str, list[int]]:
    _, _, _, stride, dilation, (begin, end) = WINDOWS[name]
    return {"strides": [stride] * 2, "dilations": [dilation] * 2, "pads": [begin, begin, end, end]}


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@pytest.mark.parametrize("name", WINDOWS)
def test_depthwise_convolution(name: str, isa: Isa, threads: int) -> None:
    channels, size, taps, *_ = WINDOWS[name]
    lanes = isa.vector_bytes // 4
    data, weights = normal(2, channels, *size), normal(channels, 1, taps, taps, seed=1)
    bias = normal(channels, seed=2)
    packed, given = pack_depthwise_weight(weights, lanes), blocked_array(data, lanes)
    x, w = te.placeholder(given.shape, name="x"), te.placeholder(packed.shape, name="w")
    b = te.placeholder((given.shape[1], lanes), name="b")
    y = blocked_bias(depthwise_convolution(x, w, _windows(name), "conv"), b, "y")
    expected = reference("Conv", [data, weights, bias], group=channels, **_attrs(name))
    arrays = {x: given, w: packed, b: blocked_array(bias, lanes, axis=0)}
    found = computed(ComputeDAG((x, w, b, y)), arrays, blocked_state, isa, threads)
    _assert_same(plain_array(found, channels), expected)


@pytest.mark.parametrize(("size", "is_kept"), [((9, 11), True), ((700, 700), False)])
def test_narrow_numbers_are_widened_once_for_each_block_that_the_cache_holds(
    size: tuple[int, int], is_kept: bool
) -> None:
    isa = Isa.host()
    lanes = isa.vector_bytes // 4
    windows = tuple(Window(extent, extent, 3, 1, 1, 1, 1) for extent in size)
    x = te.placeholder((1, 2, *size, lanes), DType.UINT8, "x")
    w = te.placeholder((2, 3, 3, lanes), name="w")
    wide = te.compute(x.shape, lambda *i: x[i].astype(DType.FLOAT32) - 3.0, "wide", attrs={BLOCKED: PADDING})
    dag = ComputeDAG((x, w, depthwise_convolution(wide, w, windows, "conv")))
    position = state_of(dag, blocked_state, isa)["wide"].compute_at
    assert position is (ComputeAt.ITER if is_kept else ComputeAt.INLINED)
    if not is_kept:
        return
    given = np.random.default_rng(0).integers(0, 256, x.shape, np.uint8)
    taps = np.random.default_rng(1).integers(-8, 8, w.shape).astype(np.float32)
    found = plain_array(computed(dag, {x: given, w: taps}, blocked_state, isa, 2), 2 * lanes)
    data = plain_array(given.astype(np.float32) - 3, 2 * lanes)
    weights = np.ascontiguousarray(taps.transpose(0, 3, 1, 2)).reshape(2 * lanes, 1, 3, 3)
    expected = reference("Conv", [data, weights], group=2 * lanes, pads=[1] * 4)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("cpu", "family", "taps", "expected"),
    [
        ("sapphirerapids", "sapphirerapids", 5, (4, 1)),
        ("sapphirerapids", "sapphirerapids", 7, (8, 1)),  # 8 sums, 14 inputs and 7 weights fill the registers
        ("sapphirerapids", "sapphirerapids", 9, (8, 0)),
        ("znver4", "znver4", 9, (4, 1)),  # one multiply-add of 64 bytes a cycle: four sums hide its latency
        ("haswell", "haswell", 3, (4, 1)),
        ("haswell", "haswell", 5, (6, 0)),
        ("haswell", "haswell", 7, (6, 0)),
    ],
)
def test_long_windows_have_sums_that_hide_the_latency(
    cpu: str, family: str, taps: int, expected: tuple[int, int]
) -> None:
    isa = replace(CPUS[cpu], machine=family_model(family))
    lanes, reach = isa.vector_bytes // 4, taps // 2
    windows = tuple(Window(48, 48, taps, 1, 1, reach, reach) for _ in range(2))
    x = te.placeholder((1, 1, 48, 48, lanes), name="x")
    w = te.placeholder((1, taps, taps, lanes), name="w")
    task = ScheduleTask(ComputeDAG((x, w, depthwise_convolution(x, w, windows, "conv"))), isa, 1)
    chain = blocked_chain(task)
    assert chain is not None
    choice = channelwise_choice(chain, task)
    assert (choice.pixels, choice.unrolled) == expected


@pytest.mark.parametrize("name", ["odd", "strided", "seven taps"])
def test_depthwise_convolution_by_rows(name: str) -> None:
    isa, threads = Isa.host(), 2
    channels, size, taps, *_ = WINDOWS[name]
    lanes = isa.vector_bytes // 4
    channels *= 4 * lanes // 16  # enough blocks for threads to share
    data, weights = normal(2, channels, *size), normal(channels, 1, taps, taps, seed=1)
    packed, given = pack_depthwise_weight(weights, lanes), blocked_array(data, lanes)
    x, w = te.placeholder(given.shape, name="x"), te.placeholder(packed.shape, name="w")
    y = depthwise_convolution(x, w, _windows(name), "conv")
    assert isinstance(y.op, te.ComputeOp)
    marked = te.Tensor(replace(y.op, attrs=y.op.attrs.updated(**{SHARES_ROWS: 1})))
    expected = reference("Conv", [data, weights], group=channels, **_attrs(name))
    found = computed(ComputeDAG((x, w, marked)), {x: given, w: packed}, blocked_state, isa, threads)
    _assert_same(plain_array(found, channels), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", WINDOWS)
def test_max_pool(name: str) -> None:
    isa = Isa.host()
    channels, size, *_ = WINDOWS[name]
    data = normal(1, channels, *size)
    data[0, 3, 2, 3], data[0, 4, 1, 1] = np.nan, -np.inf
    given = blocked_array(data, isa.vector_bytes // 4)
    x = te.placeholder(given.shape, name="x")
    dag = ComputeDAG((x, blocked_max_pool(x, _windows(name), "pool")))
    found = computed(dag, {x: given}, blocked_state, isa, 2)
    expected = _max_pool(data, name)
    np.testing.assert_array_equal(plain_array(found, channels), expected)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize(
    ("name", "with_padding"),
    [
        *((name, True) for name in WINDOWS),
        *(pytest.param(name, False, marks=[pytest.mark.slow] * (name not in UNPADDED)) for name in WINDOWS),
    ],
)
def test_average_pool(name: str, with_padding: bool) -> None:
    isa = Isa.host()
    channels, size, *_ = WINDOWS[name]
    data = normal(1, channels, *size)
    given = blocked_array(data, isa.vector_bytes // 4)
    x = te.placeholder(given.shape, name="x")
    dag = ComputeDAG((x, blocked_average_pool(x, _windows(name), with_padding, "pool")))
    found = computed(dag, {x: given}, blocked_state, isa)
    _assert_same(plain_array(found, channels), _average_pool(data, name, with_padding))


@pytest.mark.slow
@pytest.mark.parametrize("with_padding", [False, True])
@pytest.mark.parametrize("name", WINDOWS)
def test_averages_are_those_of_onnx(name: str, with_padding: bool) -> None:
    channels, size, taps, *_ = WINDOWS[name]
    data = normal(1, channels, *size)
    attrs = {"kernel_shape": [taps, taps], "count_include_pad": int(with_padding)}
    expected = reference("AveragePool", [data], **attrs, **_attrs(name))
    _assert_same(_average_pool(data, name, with_padding), expected)


@pytest.mark.parametrize("is_max", [False, True])
@pytest.mark.parametrize("channels", [16, 37, 128])
def test_global_pool(channels: int, is_max: bool, threads: int) -> None:
    isa = Isa.host()
    data = normal(2, channels, 5, 7)
    given = blocked_array(data, isa.vector_bytes // 4)
    x = te.placeholder(given.shape, name="x")
    dag = ComputeDAG((x, blocked_global_pool(x, "pool", is_max)))
    expected = reference("GlobalMaxPool" if is_max else "GlobalAveragePool", [data])
    found = computed(dag, {x: given}, blocked_state, isa, threads)
    _assert_same(plain_array(found, channels), expected)


def test_windows_are_clipped_without_a_copy_and_without_guards_inside() -> None:
    isa = Isa.host()
    window = Window(30, 30, 3, 1, 1, 1, 1)
    lanes = isa.vector_bytes // 4
    x, w = te.placeholder((1, 4, 30, 30, lanes), name="x"), te.placeholder((4, 3, 3, lanes), name="w")
    dag = ComputeDAG((x, w, depthwise_convolution(x, w, (window, window), "conv")))
    state = state_of(dag, blocked_state, isa, 2)
    assert [stage.op.name for stage in state.stages] == ["x", "w", "conv.local", "conv"]
    # What is left depends on counters of unrolled loops, which are numbers when code is written.
    visits = list(walk(written_out(loops_of(dag, blocked_state, isa, 2)).body))
    assert not any(isinstance(visit.statement, IfThenElse) for visit in visits)


def _max_pool(data: Array, name: str) -> Array:
    """By definition; ONNX's reference ignores NaN."""
    found: Array = np.maximum.reduce(_taps(data, name, -np.inf))
    return found


def _average_pool(data: Array, name: str, with_padding: bool) -> Array:
    """By definition, all pixels at once; ONNX's reference takes one at a time."""
    counts = np.add.reduce(_taps(np.ones_like(data), name, float(with_padding)))
    found: Array = np.add.reduce(_taps(data, name, 0.0)) / counts
    return found


def _taps(data: Array, name: str, around: float) -> list[Array]:
    """What each tap of the window reads for every pixel; around the image is one number."""
    _, _, taps, stride, dilation, (begin, end) = WINDOWS[name]
    wide = np.pad(data, ((0, 0), (0, 0), (begin, end), (begin, end)), constant_values=around)
    rows, columns = (window.count for window in _windows(name))
    return [
        wide[
            :,
            :,
            i * dilation : i * dilation + (rows - 1) * stride + 1 : stride,
            j * dilation : j * dilation + (columns - 1) * stride + 1 : stride,
        ]
        for i in range(taps)
        for j in range(taps)
    ]


def _assert_same(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
