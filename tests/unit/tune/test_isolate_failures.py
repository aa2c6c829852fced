"""What fails among many is found in few trials, and costs the others nothing."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from intarsia.tune.isolate_failures import isolate_failures


class Trials:
    """Groups work unless they contain something bad; keeps what was tried."""

    def __init__(self, bad: set[int]) -> None:
        self.bad, self.groups = bad, list[tuple[int, ...]]()

    def __call__(self, groups: Sequence[tuple[int, ...]]) -> list[bool]:
        self.groups += groups
        return [self.bad.isdisjoint(group) for group in groups]


@given(st.integers(1, 40), st.sets(st.integers(0, 39), min_size=1))
def test_with_enough_trials_exactly_what_is_bad_is_found(count: int, bad: set[int]) -> None:
    present = {item for item in bad if item < count} or {count - 1}
    trials = Trials(present)
    assert set(isolate_failures(range(count), trials, 1000)) == present
    assert len(trials.groups) <= 2 * len(present) * max(1, (count - 1).bit_length())


@given(st.integers(2, 40), st.sets(st.integers(0, 39), min_size=1), st.integers(0, 20))
def test_limits_hold_and_nothing_bad_is_taken_for_right(count: int, bad: set[int], most: int) -> None:
    present = {item for item in bad if item < count} or {0}
    trials = Trials(present)
    failed = set(isolate_failures(range(count), trials, most))
    assert present <= failed
    assert len(trials.groups) <= most
    seen = {item for group in trials.groups if present.isdisjoint(group) for item in group}
    assert seen.isdisjoint(failed)


def test_one_alone_needs_no_trial() -> None:
    trials = Trials({0})
    assert isolate_failures(["a"], lambda groups: [] if not groups else trials([(0,)]), 8) == ("a",)
    assert trials.groups == []


def test_what_only_fails_together_works() -> None:
    assert isolate_failures(range(4), lambda groups: [len(group) < 4 for group in groups], 8) == ()
