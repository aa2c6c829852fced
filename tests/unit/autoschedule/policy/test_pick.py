"""Epsilon-greedy picks, with states whose loop says which they are."""

from collections.abc import Sequence

import pytest
from tests.native_workloads import matmul
from tests.searched_programs import task_of

from intarsia.autoschedule.policy import pick
from intarsia.native.loop_state import LoopState

TASK = task_of(matmul(64, 8, 8))
NAMES = "abcdefgh"


def state(name: str) -> LoopState:
    """A state for a letter."""
    return LoopState.initial(TASK.dag).split("C", "i", [2 + NAMES.index(name)])


def name_of(found: LoopState) -> str:
    return next(name for name in NAMES if state(name) == found)


def states(names: str) -> Sequence[LoopState]:
    return [state(name) for name in names]


@pytest.mark.parametrize(
    ("best", "drawn", "count", "eps", "measured", "expected"),
    [
        ("abcd", "efgh", 4, 0.5, "", "abef"),
        ("abcd", "efgh", 4, 0.0, "", "abcd"),
        ("abcd", "efgh", 4, 1.0, "", "efgh"),
        ("abcd", "efgh", 4, 0.2, "", "abcd"),  # int(0.2 * 4) is 0
        ("a", "efgh", 4, 0.25, "", "aefg"),  # the best run out: random ones go on
        ("abcdef", "g", 4, 0.5, "", "abgc"),  # random ones run out: the best go on
        ("abcd", "efgh", 4, 0.5, "ae", "bcfg"),
        ("abab", "aabc", 4, 0.5, "", "abc"),  # none twice
        ("ab", "b", 4, 0.5, "ab", ""),
        ("", "", 4, 0.5, "", ""),
        ("abcd", "efgh", 0, 0.5, "", ""),
    ],
)
def test_golden_picks(best: str, drawn: str, count: int, eps: float, measured: str, expected: str) -> None:
    known = {each.text for each in states(measured)}
    found = pick(states(best), states(drawn), count, eps, known)
    assert "".join(map(name_of, found)) == expected
