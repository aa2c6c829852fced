"""Padded copies for windows are computed by rows where strides leave out most of them, with equal results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compute_rule_checks import rule_call
from tests.default_schedules import assert_matches_declared
from tests.effort import examples
from tests.emitted_kernels import x86_sets

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import ComputeAt
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.row_schedule import row_state
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.te.operators import compute, compute_call_of


def depthwise(image: tuple[int, ...], taps: tuple[int, ...], strides: tuple[int, ...]) -> ComputeDAG:
    """Return a depthwise convolution of six channels whose windows reach one element beyond the image."""
    x, w = np.zeros((1, 6, *image), np.float32), np.zeros((6, 1, *taps), np.float32)
    pads = tuple(extent // 2 for extent in taps)
    made = rule_call("Conv", [x, w], group=6, strides=strides, pads=pads * 2)
    return ComputeDAG(compute(compute_call_of(made, "t")))


@pytest.mark.parametrize(
    ("taps", "strides", "loop"),
    [
        ((1, 3, 3), (4, 4, 4), "h"),
        ((1, 3, 3), (4, 1, 1), "d"),
        ((3, 3), (8, 8), "h"),
        ((3, 3), (4, 4), None),
        ((3, 3), (1, 1), None),
        ((2, 2), (2, 2), None),
    ],
)
def test_copies_are_by_rows_where_most_of_the_image_is_not_read(
    taps: tuple[int, ...], strides: tuple[int, ...], loop: str | None
) -> None:
    dag = depthwise((33, 40, 41)[3 - len(taps) :], taps, strides)
    state = row_state(ScheduleTask(dag, Isa.host(), 1))
    (pad,) = (stage for stage in state.stages if stage.op.name.endswith(".pad"))
    assert pad.compute_at is ComputeAt.ITER
    reader, position = state.attach_map.positions[state.stages.index(pad)]
    name = state.stages[reader].iters[position].name
    assert name == loop if loop else name not in ("d", "h")
    assert_matches_declared(dag, Isa.host())


@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@settings(max_examples=examples(20, quick=4), deadline=None)
@given(
    image=st.tuples(st.integers(1, 13), st.integers(1, 17), st.integers(1, 37)),
    taps=st.tuples(st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 3]), st.sampled_from([1, 3, 5])),
    strides=st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6)),
)
def test_all_strides_compute_what_is_declared(
    isa: Isa, image: tuple[int, ...], taps: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    assert_matches_declared(depthwise(image, taps, strides), isa, threads=2)
