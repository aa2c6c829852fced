"""Inlined stages, however many."""

import numpy as np
import pytest
from tests.loop_evaluator import run_prim_func
from tests.properties.test_lowering_states import check_results

from intarsia.ir import GlobalVar, IRModule, PrimFunc
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import Store
from intarsia.ir.verify import verify
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower


def all_inlined(dag: ComputeDAG) -> LoopState:
    """Every stage but the first and the last in what reads it."""
    state = LoopState.initial(dag)
    for stage in range(1, len(dag.ops) - 1):
        state = state.compute_inline(stage)
    return state


def lowered(state: LoopState) -> PrimFunc:
    function = lower(state.initial_dag, state)
    verify(IRModule({GlobalVar("main"): function}))
    return function


def test_a_long_chain() -> None:
    given = te.placeholder((2,), name="A")
    last = given
    for place in range(150):
        last = te.compute((2,), lambda i, before=last: before[i] + 1.0, name=f"add{place}")
    function = lowered(all_inlined(ComputeDAG((given, last))))
    found = {"A": np.zeros(2, np.float32), last.buffer.name: np.zeros(2, np.float32)}
    run_prim_func(function, found)
    assert found[last.buffer.name].tolist() == [150, 150]


def test_a_chain_in_which_each_is_read_twice() -> None:
    given = te.placeholder((2,), name="A")
    last = given
    for place in range(40):
        last = te.compute((2,), lambda i, before=last: (before[i] + before[i]) * 0.5, name=f"mean{place}")
    function = lowered(all_inlined(ComputeDAG((given, last))))
    assert sum(isinstance(visit.statement, Store) for visit in walk(function.body)) < 45
    found = {"A": np.ones(2, np.float32), last.buffer.name: np.zeros(2, np.float32)}
    run_prim_func(function, found)
    assert found[last.buffer.name].tolist() == [1, 1]


def test_axes_of_the_same_names_are_told_apart() -> None:
    given = te.placeholder((3, 3), name="A")
    turned = te.compute((3, 3), lambda i, j: given[j, i] * 2.0, name="turned")
    last = te.compute((3, 3), lambda i, j: turned[j, i] + turned[i, (i + j) % 3], name="last")
    check_results(all_inlined(ComputeDAG((given, last))), 1)


@pytest.mark.parametrize("loop", ["i", "j"])
def test_padding_inside_what_reads_it(loop: str) -> None:
    given = te.placeholder((4,), name="A")
    twice = te.compute((4,), lambda i: given[i] * 2.0, name="twice")
    pad = te.compute(
        (6,),
        lambda i: te.if_then_else(te.logical_and(i >= 1, i < 5), twice[i - 1], 0.0),
        name="pad",
    )
    last = te.compute((4, 3), lambda i, j: pad[i + j] + 1.0, name="last")
    state = (
        LoopState.initial(ComputeDAG((given, last))).compute_inline("pad").compute_at("twice", "last", loop)
    )
    check_results(state, 0)
