"""Prefixes along every axis, in registers for short rows and in memory for long ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compute_rule_checks import rule_call
from tests.default_schedules import run_scheduled
from tests.effort import examples
from tests.emitted_kernels import x86_sets

from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import Allocate, MemoryScope
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.scheduled import scheduled
from intarsia.native.te.operators import compute, compute_call_of

SETS = x86_sets()


def _declared(
    shape: tuple[int, ...], axis: int, *, is_exclusive: bool = False, is_reversed: bool = False
) -> ComputeDAG:
    args = [np.zeros(shape, np.float32), np.array(axis)]
    call = rule_call("CumSum", args, exclusive=int(is_exclusive), reverse=int(is_reversed))
    return ComputeDAG(compute(compute_call_of(call, "t")))


def _registers(shape: tuple[int, ...], axis: int) -> list[tuple[int, ...]]:
    """Return the shapes of the prefixes that stay in registers."""
    body = scheduled(_declared(shape, axis), Isa.host(), 1).lowered().body
    entered = (visit.statement for visit in walk(body) if visit.event is Event.ENTER)
    allocated = (item.buffer for item in entered if isinstance(item, Allocate))
    return [buffer.shape for buffer in allocated if buffer.scope is MemoryScope.REGISTER]


@pytest.mark.parametrize(
    ("shape", "axis", "registers"),
    [
        ((3, 40, 5), 1, [(5,)]),
        ((3, 40, 4, 16), 1, [(4, 16)]),
        ((3, 40, 65), 1, []),
        ((3, 40), 1, [(3,)]),
        ((19, 40), 1, [(8,), (3,)]),
        ((40,), 0, [()]),
    ],
)
def test_prefixes_of_short_rows_stay_in_registers(
    shape: tuple[int, ...], axis: int, registers: list[tuple[int, ...]]
) -> None:
    assert _registers(shape, axis) == registers


@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@settings(max_examples=examples(12, quick=3), deadline=None)
@given(st.data())
def test_prefixes_are_right(isa: Isa, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 20), min_size=1, max_size=4)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    is_exclusive, is_reversed = data.draw(st.booleans()), data.draw(st.booleans())
    dag = _declared(shape, axis, is_exclusive=is_exclusive, is_reversed=is_reversed)
    x = np.random.default_rng(7).integers(-50, 50, shape).astype(np.float32)
    (prefixes,) = run_scheduled(dag, {"t.x0": x}, isa)
    ordered = np.flip(x, axis) if is_reversed else x
    expected = np.cumsum(ordered, axis, dtype=np.float32)
    expected = expected - ordered if is_exclusive else expected
    np.testing.assert_array_equal(prefixes, np.flip(expected, axis) if is_reversed else expected)
