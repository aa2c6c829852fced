"""The wall time of a run, divided among its measurements."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from intarsia.measure.wall_account import WallAccount

SECONDS = st.integers(0, 1000)


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_measurement_is_charged_with_what_went_before_it() -> None:
    clock = Clock()
    account = WallAccount(clock, earlier=3.0)
    clock.now += 2.0
    assert account.uncharged == 5.0
    clock.now += 1.0
    assert account.charge(1.0) == 6.0
    assert account.uncharged == 0.0
    clock.now += 4.0
    assert account.charge(0.5) == 4.0


def test_what_a_stored_measurement_takes_is_not_charged() -> None:
    clock = Clock()
    account = WallAccount(clock, earlier=3.0)
    clock.now += 2.0
    account.skip()
    assert account.uncharged == 0.0
    clock.now += 1.0
    assert account.charge(1.0) == 1.0


def test_planned_seconds_are_charged_where_no_time_passes() -> None:
    account = WallAccount(Clock())
    assert [account.charge(10.0), account.charge(5.0)] == [10.0, 5.0]


@given(st.lists(st.tuples(SECONDS, SECONDS), max_size=12), SECONDS)
def test_charges_add_up_to_the_wall_time_or_to_what_was_reported(
    steps: list[tuple[int, int]], earlier: int
) -> None:
    clock = Clock()
    account = WallAccount(clock, earlier=earlier)
    charges = []
    for passed, reported in steps:
        clock.now += passed
        before = account.uncharged
        charges.append(account.charge(reported))
        assert charges[-1] >= before
    assert all(charge >= 0 for charge in charges)
    if steps:
        wall, reported = earlier + sum(step[0] for step in steps), sum(step[1] for step in steps)
        assert wall <= sum(charges) <= wall + reported
        assert sum(charges) >= reported
