"""Models that do not learn, and trees without their library."""

import sys
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from intarsia.autoschedule.cost_model import BoostedTrees, DraftModel, RandomModel, draft_cycles
from intarsia.autoschedule.features import Machine
from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower
from intarsia.support.errors import UsageError
from intarsia.target.machine_model import MachineModel

MACHINE = Machine(32, 16, 32 * 1024, 512 * 1024, 4)


def _tiled(task: SearchTask, rows: int, columns: int) -> LoopState:
    state = LoopState.initial(task.dag).split("C", "i", [rows]).split("C", "j", [columns])
    return state.reorder("C", ["i.0", "j.0", "k", "i.1", "j.1"])


def _in_registers(task: SearchTask, rows: int, columns: int) -> LoopState:
    return _tiled(task, rows, columns).unroll("C", "i.1").vectorize("C", "j.1")


def _cycles(task: SearchTask, state: LoopState) -> float:
    return draft_cycles(lower(task.dag, state), MACHINE)


def test_random_scores(task: SearchTask, states: tuple[LoopState, ...]) -> None:
    first, second = (RandomModel(np.random.default_rng(3)).predict(task, states) for _ in range(2))
    assert np.array_equal(first, second)
    assert first.shape == (len(states),)
    assert len(set(first.tolist())) == len(states)
    assert ((first >= 0) & (first < 1)).all()


def test_the_draft_prefers_vectors(task: SearchTask) -> None:
    plain = _tiled(task, 4, 16)
    assert _cycles(task, plain.vectorize("C", "j.1")) < _cycles(task, plain) / 4


def test_the_draft_prefers_tiles_that_fill_the_registers(task: SearchTask) -> None:
    by_tile = {tile: _cycles(task, _in_registers(task, *tile)) for tile in ((1, 8), (4, 16), (16, 32))}
    assert min(by_tile, key=lambda tile: by_tile[tile]) == (4, 16)


def test_the_draft_knows_that_results_leave_registers_in_loops_that_stay(task: SearchTask) -> None:
    state = _tiled(task, 4, 16).vectorize("C", "j.1")
    kept = state.unroll("C", "i.1")
    hinted = state.pragma("C", 0, "auto_unroll_max_step$16")
    assert _cycles(task, kept) == _cycles(task, hinted) < _cycles(task, state)


def test_the_draft_counts_a_rest_as_less_than_a_whole_tile(task: SearchTask) -> None:
    extent = LoopState.initial(task.dag)["C"].iters[0].extent
    assert extent is not None
    even, uneven = _in_registers(task, 4, 16), _in_registers(task, 5, 16)
    assert extent % 4 == 0 < extent % 5
    assert _cycles(task, uneven) < _cycles(task, even) * (-(-extent // 5) * 5 / extent)


def test_the_draft_prefers_threads_that_all_have_work(task: SearchTask) -> None:
    times = [
        _cycles(task, _tiled(task, rows, 16).vectorize("C", "j.1").parallel("C", "i.0")) for rows in (4, 32)
    ]
    assert times[0] < times[1] < _cycles(task, _tiled(task, 32, 16).vectorize("C", "j.1"))


def test_the_draft_prefers_to_start_threads_once(task: SearchTask) -> None:
    state = LoopState.initial(task.dag)
    assert _cycles(task, state.parallel("C", "i")) < _cycles(task, state.parallel("C", "j"))


def test_the_draft_prefers_rows_to_gathered_vectors(task: SearchTask) -> None:
    gathered = LoopState.initial(task.dag).split("C", "i", [8]).reorder("C", ["i.0", "j", "k", "i.1"])
    smooth = LoopState.initial(task.dag).split("C", "j", [8]).reorder("C", ["i", "j.0", "k", "j.1"])
    assert _cycles(task, smooth.vectorize("C", "j.1")) < _cycles(task, gathered.vectorize("C", "i.1"))


def test_draft_scores_are_higher_for_fewer_cycles(task: SearchTask) -> None:
    slow, fast = LoopState.initial(task.dag), _tiled(task, 4, 16).vectorize("C", "j.1")
    scores = DraftModel(MACHINE).predict(
        task, [slow, fast, LoopState.initial(task.dag).split("C", "i", [None])]
    )
    assert 0 < scores[0] < scores[1]
    assert scores[2] == -inf


def test_trees_without_their_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(UsageError, match="need LightGBM") as caught:
        BoostedTrees()
    assert "intarsia[tuning]" in caught.value.help


def test_the_draft_follows_the_machine(task: SearchTask, states: tuple[LoopState, ...]) -> None:
    """Threads that start late cost more; slower caches, and more latency, make no state cheaper."""

    def cycles(model: MachineModel) -> list[float]:
        machine = replace(MACHINE, model=model)
        return [draft_cycles(lower(task.dag, state), machine) for state in states]

    usual = cycles(MachineModel())
    for slower in (
        MachineModel(barrier_cycles=5120),
        MachineModel(second_bandwidth=1.0),
        MachineModel(memory_bandwidth=0.1),
        MachineModel(fma_latency=40),
        MachineModel(fma_pipes=1),
    ):
        changed = cycles(slower)
        assert all(now >= before for now, before in zip(changed, usual, strict=True))
        assert changed != usual
