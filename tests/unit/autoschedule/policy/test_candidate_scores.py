from math import inf, nan

import pytest
from tests.native_workloads import matmul
from tests.schedule_measurers import FunctionModel
from tests.searched_programs import task_of

from intarsia.autoschedule.policy import CandidateScores
from intarsia.native.loop_state import LoopState

TASK = task_of(matmul(64, 8, 8))
STATES = [LoopState.initial(TASK.dag).split("C", "i", [length]) for length in (1, 2, 4, 8, 16)]


def length(state: LoopState) -> float:
    """The split of a state: 1 to 16."""
    return float(state.stages[2].iters[1].extent or 0)


def test_a_program_is_asked_for_once() -> None:
    model = FunctionModel(length)
    scores = CandidateScores(TASK, model)
    assert scores.of([*STATES[:3], STATES[0]]) == [1, 2, 4, 1]
    assert scores.of([STATES[3], STATES[1]]) == [8, 2]
    assert model.asked == STATES[:4]


def test_the_draft_leaves_out_most() -> None:
    model, draft = FunctionModel(length), FunctionModel(lambda state: -length(state))
    scores = CandidateScores(TASK, model, draft, 0.5)
    assert scores.of(STATES) == [1, 2, 4, -inf, -inf]
    assert scores.of(STATES[::-1]) == [-inf, -inf, 4, 2, 1]
    assert draft.asked == STATES
    assert model.asked == STATES[:3]


def test_a_share_is_rounded_up() -> None:
    draft = FunctionModel(length)
    assert CandidateScores(TASK, FunctionModel(length), draft, 0.01).of(STATES[:2]) == [-inf, 2]
    assert CandidateScores(TASK, FunctionModel(length), draft, 0.0).of(STATES[:2]) == [-inf, 2]
    assert CandidateScores(TASK, FunctionModel(length), draft, 0.4).of(STATES[:3]) == [-inf, 2, 4]


def test_what_was_measured_is_never_left_out() -> None:
    model, draft = FunctionModel(length), FunctionModel(lambda state: -length(state))
    scores = CandidateScores(TASK, model, draft, 0.5, {STATES[4].text})
    assert scores.of(STATES) == [1, 2, -inf, -inf, 16]
    assert STATES[4] not in draft.asked


def test_what_cannot_work_by_the_draft_is_left_out() -> None:
    draft = FunctionModel(lambda state: -inf if length(state) > 2 else 1.0)
    assert CandidateScores(TASK, FunctionModel(length), draft, 0.9).of(STATES) == [1, 2, -inf, -inf, -inf]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_without_pruning_no_draft_is_asked(share: float) -> None:
    """It is off with a share of 1, and where the draft is the model itself."""
    draft = FunctionModel(length)
    model = draft if share < 1 else FunctionModel(length)
    assert CandidateScores(TASK, model, draft, share).of(STATES) == [1, 2, 4, 8, 16]
    assert (draft.asked == []) is (model is not draft)


def test_no_number_is_no_score() -> None:
    assert CandidateScores(TASK, FunctionModel(lambda _: nan)).of(STATES[:1]) == [-inf]
    assert CandidateScores(TASK, FunctionModel(length)).of([]) == []
