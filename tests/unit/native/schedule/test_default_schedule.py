"""Every DAG has a default schedule, which computes what the DAG declares."""

from __future__ import annotations

import pytest
from tests.default_schedules import assert_matches_declared
from tests.emitted_kernels import x86_sets
from tests.native_workloads import WORKLOADS
from tests.properties.lowering_programs import HARD

from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import ComputeAt, IteratorAnnotation
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state, scheduled

pytestmark = pytest.mark.quick_tests(
    12, also=["test_little_work_needs_no_threads", "test_one_thread_needs_no_parallel_loop"]
)

SETS = x86_sets()
PROGRAMS = {**WORKLOADS, **HARD}


@pytest.mark.quick_cases(14)
@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_schedules_compute_what_is_declared(name: str, threads: int, isa: Isa) -> None:
    assert_matches_declared(ComputeDAG(PROGRAMS[name]()), isa, threads)


def chain(*shape: int) -> ComputeDAG:
    x = te.placeholder(shape, name="x")
    twice = te.compute(shape, lambda *i: x[i] * 2.0, name="twice")
    grown = te.compute(shape, lambda *i: te.exp(twice[i]), name="grown")
    return ComputeDAG((te.compute(shape, lambda *i: grown[i] + twice[i], name="y"),))


def test_a_chain_of_elements_is_one_nest() -> None:
    state = default_state(chain(64, 512), Isa.host(), 4)
    assert [stage.compute_at for stage in state.stages[1:]] == [
        *(ComputeAt.INLINED, ComputeAt.INLINED, ComputeAt.ROOT)
    ]
    annotations = [loop.annotation for loop in state["y"].iters]
    assert annotations == [IteratorAnnotation.PARALLEL, IteratorAnnotation.VECTORIZE]


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (1, 1), (3, 1, 5), (1, 1, 70000), (300, 3), (2, 3, 4, 5)])
@pytest.mark.parametrize("threads", [1, 4])
def test_chains_of_every_shape(shape: tuple[int, ...], threads: int) -> None:
    assert_matches_declared(chain(*shape), Isa.host(), threads)


def test_one_thread_needs_no_parallel_loop() -> None:
    for make in WORKLOADS.values():
        state = default_state(ComputeDAG(make()), Isa.host(), 1)
        annotations = {loop.annotation for stage in state.stages for loop in stage.iters}
        assert IteratorAnnotation.PARALLEL not in annotations


def test_little_work_needs_no_threads() -> None:
    assert "parallel" not in str(default_state(chain(8, 8), Isa.host(), 8))
    assert "parallel" in str(default_state(chain(1 << 20), Isa.host(), 8))


def test_what_is_not_free_is_not_packed() -> None:
    assert scheduled(chain(8, 8), Isa.host(), 1).packings == ()


def test_products_and_sums_may_be_one_operation() -> None:
    assert scheduled(chain(8, 8), Isa.host(), 1).lowered().attrs["contract"] == 1
