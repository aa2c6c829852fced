"""How much code loops come to is known before they are unrolled."""

from random import Random

import pytest
from tests.searched_programs import random_programs, small_task

from intarsia.ir import GlobalVar, IRModule
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import Store
from intarsia.measure.schedules.code_size import stores_when_unrolled
from intarsia.measure.schedules.schedule_kernel import compile_schedule
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import with_state
from intarsia.native.tir.unroll_loop import UnrollLoop
from intarsia.support.errors import CompileError


@pytest.mark.parametrize("name", ["matmul", "conv2d_nchw_bn_relu", "softmax_nm"])
def test_the_stores_are_those_after_unrolling(name: str) -> None:
    task, counts = small_task(name), []
    for state in random_programs(name, 8, seed=6):
        mod = IRModule({GlobalVar("f"): with_state(task.dag, state).lowered()})
        after = UnrollLoop()(mod).prim_func("f")
        stores = sum(isinstance(visit.statement, Store) for visit in walk(after.body))
        assert stores_when_unrolled(mod, "f") == stores
        counts.append(stores)
    assert len(set(counts)) > 2


def test_too_much_is_refused_before_it_is_made() -> None:
    task = small_task("matmul")
    state = Random(0).choice(random_programs("matmul", 4, seed=1))
    chosen = with_state(task.dag, state)
    with pytest.raises(CompileError, match=r"these loops come to \d+ stores, more than 0"):
        compile_schedule(chosen, Isa.host(), 0)
    assert compile_schedule(chosen, Isa.host()).kernel.object_code
