"""Random states of a product, as a search makes them."""

import random

import pytest
from tests.native_workloads import matmul

from intarsia.autoschedule.task import HardwareParams, SearchTask
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.target import Target


@pytest.fixture(scope="session")
def task() -> SearchTask:
    """A product of 64 by 64 by 64."""
    return SearchTask.of_dag(
        ComputeDAG(matmul(64, 64, 64)), Target("cpu -toolchain=native"), HardwareParams(4)
    )


@pytest.fixture(scope="session")
def states(task: SearchTask) -> tuple[LoopState, ...]:
    """60 states that print differently."""
    rng, found = random.Random(0), dict[str, LoopState]()
    while len(found) < 60:
        state = _random_state(task.dag, rng)
        found.setdefault(str(state), state)
    return tuple(found.values())


def _random_state(dag: ComputeDAG, rng: random.Random) -> LoopState:
    sizes = [rng.choice((1, 2, 4, 8, 16, 32)) for _ in range(3)]
    state = LoopState.initial(dag)
    for loop, size in zip("ijk", sizes, strict=True):
        state = state.split("C", loop, [size])
    order = rng.choice(
        (["i.0", "j.0", "k.0", "k.1", "i.1", "j.1"], ["i.0", "j.0", "k.0", "i.1", "k.1", "j.1"])
    )
    state = state.reorder("C", order)
    if rng.random() < 0.6:
        state = state.vectorize("C", "j.1")
    if rng.random() < 0.6:
        state = state.parallel("C", "i.0")
    return state.pragma("C", "i.0", f"auto_unroll_max_step${rng.choice((0, 16, 64))}")
