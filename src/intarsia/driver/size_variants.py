"""Variants for the sizes that the user names, each compiled by the toolchain that is fastest at that size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.driver.baselines import engines, whole_name
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.judge.trials import Trial
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.sizes.size_sample import SizeSample
from intarsia.passes import bind_sizes
from intarsia.support.free_names import free_name
from intarsia.target import Target
from intarsia.tune.choice import Choice
from intarsia.tune.contest.contest import Contest
from intarsia.tune.contest.entrant import Entrant
from intarsia.tune.tuned_candidate import Decision, decisions_and_base, tuned_candidate

LEAST_GAIN: Final = 1.03
"""Minimum ratio of the time of the program for any size to that of a variant: less is noise, and memory is
paid for it."""


@dataclass(frozen=True, slots=True, eq=False)
class SizeVariants:
    """Adds variants to the winner of a contest.

    Attributes:
        contest: Contest that was decided.
        workload: The model, with its samples.
        trials: Input sets of the samples, with their right results.
        targets: Targets that may compile variants.
        seconds: Seconds for measuring variants.
    """

    contest: Contest
    workload: Workload
    trials: Sequence[Trial]
    targets: Sequence[Target]
    seconds: float

    def enter(self, winner: Entrant) -> bool:
        """Let the winner with variants take part in the contest; return whether there are any.

        At each named size, the most frequent ones first, every toolchain compiles the program with this size
        put in. The fastest becomes a variant, unless the winner itself is about as fast there.

        Raises:
            IntarsiaError: Measuring is impossible.
        """
        others, base = decisions_and_base(winner.input.candidate)
        decisions = self._decisions(winner, others)
        if not decisions:
            return False
        # Variants come first: decisions on the program must not change what was measured of them.
        candidate = tuned_candidate((*decisions, *others), base)
        name = free_name(f"{winner.name} by size", [item.name for item in self.contest.entrants], " ({})", 2)
        self.contest.enter_new([Entrant(name, MeasureInput(self.workload, winner.input.target, candidate))])
        return True

    def _decisions(self, winner: Entrant, others: Sequence[Decision]) -> tuple[Decision, ...]:
        records = {record.name: record for record in self.contest.records()}
        seconds_for_any = dict(records[winner.name].by_size)
        measurer = self.contest.measurer
        begun = measurer.spent
        decisions: list[Decision] = []
        late: list[str] = []
        timed = [sample for sample in self.workload.samples if sample.is_named and sample.weight]
        for sample in sorted(timed, key=lambda item: -item.weight):
            left = self.seconds - (measurer.spent - begun)
            costs = self._costs(sample, left) if left > 0 and not self.contest.should_stop() else None
            if costs is None:
                late.append(sample.label)
                continue
            if not costs:
                continue
            target, seconds = min(costs.items(), key=lambda pair: pair[1])
            gain = seconds_for_any.get(sample.label, math.inf) / seconds
            decision = _decision(sample, target)
            if gain >= LEAST_GAIN and decision not in others:
                decisions.append(decision)
        if late:
            self.contest.notes.append(f"there was no time for variants for {', '.join(late)}")
        return tuple(decisions)

    def _costs(self, sample: SizeSample, seconds: float) -> dict[Target, float] | None:
        """Return the seconds of the program at some sizes by target; None if time was too short for all.

        The fastest of some targets only would be a guess.
        """
        trial = next((item for item in self.trials if item.label == sample.label), None)
        if trial is None:  # no judge computes the program at this size
            return {}
        workload = Workload(
            bind_sizes(self.workload.module, sample.sizes),
            f"{self.workload.name} at {sample.label}",
            dict(trial.inputs),
            expected=tuple(trial.gate.expected),
            is_checked=False,
            settings=self.workload.settings,
        )
        targets = engines(self.targets)
        inputs = [MeasureInput(workload, target, WHOLE) for target in targets]
        results = self.contest.measure(inputs, seconds)
        if None in results:
            return None
        pairs = zip(targets, results, strict=True)
        return {target: result.cost for target, result in pairs if result is not None and result.is_ok}


def _decision(sample: SizeSample, target: Target) -> Decision:
    sizes = [f"{name}={size}" for name, size in sample.sizes.items()]
    choice = Choice("SpecializeSizes", {"sizes": sizes, "target": str(target)})
    return f"SpecializeSizes: {sample.label} on {whole_name(target)}", choice
