from math import inf

from tests.native_workloads import matmul
from tests.schedule_measurers import FunctionModel, draft_seconds
from tests.searched_programs import task_of

from intarsia.autoschedule.policy import CoordinateDescent, neighbours
from intarsia.autoschedule.population import replay_program
from intarsia.native.loop_state import LoopState

TASK = task_of(matmul(16, 16, 16))


def start() -> LoopState:
    """A program with several levels of tiles."""
    split = LoopState.initial(TASK.dag).split("C", "i", [2, 2]).split("C", "j", [2, 2]).split("C", "k", [2])
    ordered = split.reorder("C", ["i.0", "j.0", "i.1", "j.1", "k.0", "i.2", "k.1", "j.2"])
    found = replay_program(TASK.dag, ordered.parallel("C", 0).vectorize("C", 7).transform_steps)
    assert found is not None
    return found


def test_it_walks_to_where_no_neighbour_is_better() -> None:
    descent = CoordinateDescent(TASK, FunctionModel(lambda state: 1 / draft_seconds(state)))
    best = start()
    known = {best.text: draft_seconds(best)}
    path = [known[best.text]]
    while batch := descent.candidates(best, 8, known):
        assert len(batch) <= 8
        assert not known.keys() & {state.text for state in batch}
        known |= {state.text: draft_seconds(state) for state in batch}
        best = min((best, *batch), key=draft_seconds)
        path.append(known[best.text])
    assert path == sorted(path, reverse=True)
    assert len(set(path)) > 2
    around = [draft_seconds(state) for state in neighbours(TASK, best)]
    assert min(around) >= path[-1]


def test_a_local_best_has_nothing_to_measure() -> None:
    descent = CoordinateDescent(TASK, FunctionModel(lambda _: 1.0))
    known = {start().text, *(state.text for state in neighbours(TASK, start()))}
    assert descent.candidates(start(), 8, known) == ()


def test_the_model_says_which_come_first() -> None:
    model = FunctionModel(lambda state: 1 / draft_seconds(state))
    every = neighbours(TASK, start())
    best = min(draft_seconds(state) for state in every)
    (first,) = CoordinateDescent(TASK, model).candidates(start(), 1, set())
    assert draft_seconds(first) == best
    model.asked.clear()
    assert CoordinateDescent(TASK, model).candidates(start(), len(every), set()) == every
    assert model.asked == []  # where all are measured, the order does not matter


def test_neighbours_that_cannot_work_come_last() -> None:
    every = neighbours(TASK, start())
    dead = every[0].text
    model = FunctionModel(lambda state: -inf if state.text == dead else 1.0)
    found = CoordinateDescent(TASK, model).candidates(start(), len(every) - 1, set())
    assert dead not in {state.text for state in found}
