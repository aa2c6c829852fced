from math import inf, nan

import pytest
from tests.native_workloads import matmul
from tests.searched_programs import task_of

from intarsia.autoschedule.policy import MeasuredStates
from intarsia.native.loop_state import LoopState

TASK = task_of(matmul(64, 8, 8))
A, B, C, D = (LoopState.initial(TASK.dag).split("C", "i", [length]) for length in (2, 4, 8, 16))


def known(*pairs: tuple[LoopState, float], preferred: str | None = None) -> MeasuredStates:
    found = MeasuredStates(preferred)
    for state, cost in pairs:
        found.add(state, cost)
    return found


def test_the_least_cost_is_the_best() -> None:
    found = known((A, 3.0), (B, 1.0), (C, 2.0))
    assert (found.best_state, found.best_cost, found.best_trials, found.trials) == (B, 1.0, 2, 3)
    assert found.best(2) == (B, C)
    assert found.best(9) == (B, C, A)
    assert A.text in found
    assert D.text not in found
    assert found.texts == {A.text, B.text, C.text}


@pytest.mark.parametrize("cost", [inf, nan, 0.0, -1.0])
def test_failures_are_known_and_never_the_best(cost: float) -> None:
    found = known((A, cost))
    assert (found.best_state, found.best_cost, found.best(3)) == (None, inf, ())
    assert A.text in found
    assert not found.works(A.text)
    assert found.trials == 1


def test_among_equals_the_first_wins_but_for_the_preferred_one() -> None:
    assert known((A, 1.0), (B, 1.0)).best_state == A
    found = known((A, 1.0), (B, 1.0), (C, 1.0), preferred=B.text)
    assert (found.best_state, found.best(3)) == (B, (B, A, C))
    assert known((B, 1.0), (A, 0.9), preferred=B.text).best_state == A


def test_the_same_history_may_be_another_program() -> None:
    """Programs are the same if they print the same, however they came."""
    other = LoopState.initial(TASK.dag).split("C", "j", [2]).fuse("C", [1, 2])
    again = LoopState.initial(TASK.dag).split("C", "j", [4]).fuse("C", [1, 2])
    assert other.transform_steps != again.transform_steps
    assert again.text in known((other, 1.0))


def test_a_second_cost_takes_the_place_of_the_first() -> None:
    found = known((A, 1.0), (B, 2.0), (A, 3.0))
    assert (found.best_state, found.best_cost, found.trials) == (B, 2.0, 2)
    assert known((A, 1.0), (A, inf)).best_state is None


def test_it_has_stalled_some_trials_after_the_best() -> None:
    found = known((A, 1.0), (B, 2.0), (C, 2.0))
    assert found.has_stalled(1)
    assert not found.has_stalled(2)
    assert not found.has_stalled(None)
    assert not known((A, inf), (B, inf)).has_stalled(0)


def test_finalists_are_compared_with_one_another_only() -> None:
    found = known((A, 1.0), (B, 1.1), (C, 1.2))
    found.confirm([A, B], [1.5, 1.4])
    assert (found.best_state, found.best_cost) == (B, 1.4)
    found.add(D, 1.3)
    assert found.best_state == D


def test_finalists_are_close_to_the_best() -> None:
    measured = known((A, 1.3), (B, 1.0), (C, inf), (D, 1.2))
    assert measured.best(3) == (B, D, A)
    assert measured.best(3, 1.25) == (B, D)
    assert measured.best(1, 1.25) == (B,)
    assert known((C, inf)).best(3, 1.25) == ()


def test_a_finalist_that_fails_is_out() -> None:
    found = known((A, 1.0), (B, 1.1), (C, 1.2))
    found.confirm([A, B], [inf, 2.0])
    assert found.best_state == B
    found.confirm([B], [inf])
    assert (found.best_state, found.best_cost) == (C, 1.2)


@pytest.mark.parametrize(
    ("cost", "best"), [(0.99, A), (0.98, B)], ids=["equal within noise", "clearly faster"]
)
def test_the_preferred_finalist_is_beaten_by_what_is_clearly_faster(cost: float, best: LoopState) -> None:
    found = MeasuredStates(preferred=A.text)
    for state, first in ((A, 1.0), (B, 0.5)):
        found.add(state, first)
    assert found.best_state == B
    found.confirm([B, A], [cost, 1.0])
    assert found.best_state == best


def test_a_confirmed_program_is_the_best_until_a_later_one_is_faster() -> None:
    found = known((A, 1.0), (B, 1.4))
    found.select_confirmed(B)
    assert (found.best_state, found.best_cost) == (B, 1.4)
    found.add(C, 1.5)
    found.add(C, 1.6)
    assert found.best_state == B
    found.add(C, 1.3)
    assert found.best_state == C
    found.add(C, inf)
    assert found.best_state == B
    found.add(B, inf)
    assert found.best_state == A
