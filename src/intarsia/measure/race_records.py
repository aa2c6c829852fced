"""Store races in the database: samples by candidate in the order of rounds, so that races can be replayed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_input import Candidate, MeasureInput
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.race.policy import RacePolicy
from intarsia.measure.race.racing import Race
from intarsia.measure.race.result import RaceEnd
from intarsia.measure.runner import Raced
from intarsia.support.digest import digest_text

RACED = "raced"
"""Kind of the records of races; such candidates are only looked up, never instantiated."""


def raced_inputs(racers: Mapping[str, MeasureInput], policy: RacePolicy) -> dict[str, MeasureInput]:
    """Return the keys of each racer's samples, which count for this race only.

    Another set of candidates or another policy is another race.
    """
    field = digest_text(
        (repr(policy), *(f"{name}:{item.target}:{item.candidate.digest}" for name, item in racers.items()))
    )
    return {
        name: MeasureInput(
            item.workload,
            item.target,
            Candidate(
                RACED,
                {"kind": item.candidate.kind, "trace": item.candidate.trace, "race": field, "name": name},
            ),
        )
        for name, item in racers.items()
    }


def replay_race(results: Mapping[str, MeasureResult], policy: RacePolicy) -> Raced:
    """Replay a race from its records.

    Args:
        results: Results by name, in the order in which the candidates entered.
        policy: Policy of the race.
    """
    failures = {
        name: Outcome(result.error, result.message) for name, result in results.items() if not result.is_ok
    }
    racers = {name: list(reversed(result.costs)) for name, result in results.items() if result.is_ok}
    if not racers:
        return Raced(None, failures)
    race = Race(tuple(racers), policy)
    while (name := race.next_candidate()) is not None:
        if racers[name]:
            race.record(name, racers[name].pop())
        else:
            race.stop(RaceEnd.SECONDS_SPENT)
    return Raced(race.result(), failures)


def race_results(
    raced: Raced, recorded: Mapping[str, MeasureInput], seconds: float, now: float
) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """Yield the result of each racer with its key.

    Args:
        raced: A race that has ended by itself.
        recorded: Keys of the racers by name.
        seconds: Time that the race took.
        now: Time of its end, in seconds since 1970 (UTC).
    """
    for name, item in recorded.items():
        failed = raced.failures.get(name)
        if failed is not None:
            yield item, MeasureResult((), failed.error, failed.message, seconds, now)
        else:
            assert raced.result is not None
            samples = raced.result.candidate(name).samples
            yield item, MeasureResult(samples, MeasureError.OK, "", seconds, now)
