"""The search of placements of parts: first by sums of measured parts, then end to end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Final, Protocol

from intarsia.collage.collage import CollageResult, collage
from intarsia.collage.collage_partition import MEASURED
from intarsia.collage.conflicts import declared_conflicts
from intarsia.collage.costs.cost_estimator import COST_ESTIMATORS
from intarsia.collage.evolution.evolve_placements import evolve
from intarsia.collage.evolution.placement_space import PlacementSpace
from intarsia.collage.function_search import CollageOptions
from intarsia.collage.gather_specs import gather_partition_specs
from intarsia.collage.placement.placement import Placement
from intarsia.collage.planned_devices import spans_devices
from intarsia.collage.search_by_measured_sums import (
    LEAST_SEARCH,
    mixed_placements,
    search_by_measured_sums,
)
from intarsia.ir import IRModule
from intarsia.measure.measure_input import Workload
from intarsia.measure.work import random_operators
from intarsia.op.infer import infer_types
from intarsia.support.errors import UnsupportedModelError, UsageError
from intarsia.target import Target
from intarsia.tune.candidates import evaluate
from intarsia.tune.measuring_evaluator import MeasuringEvaluator
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.whole_evaluator import measuring_evaluator

_WORTH: Final = 1.03
"""Factor that a mix must be able to gain; with less in sight nothing more is measured."""

_EVOLUTION_SHARE: Final = 1 / 3
"""Share of the time for evolving what the sums have given, end to end."""


_BATCH: Final = 4
"""Number of placements that are built at the same time, before the budget is checked."""


class PartOptions(Protocol):
    """What a search of parts reads of the options of `TunePlacement`."""

    @property
    def placements(self) -> Sequence[Placement]:
        """Further placements of parts."""

    @property
    def estimator(self) -> str:
        """A name of `COST_ESTIMATORS`, or "measured"."""

    @property
    def seconds(self) -> float:
        """Time for measuring parts."""

    @property
    def covers(self) -> int:
        """How many placements that Collage finds are evaluated, at most."""

    @property
    def evolves(self) -> bool:
        """Whether the placements that were found are evolved."""

    @property
    def seed(self) -> int:
        """Random seed of the evolution."""


@dataclass(eq=False)
class PartSearch:
    """A search of placements of parts.

    Attributes:
        options: Options of the pass.
        ctx: Context of the pass; what was found is a note of its tuning tree.
        targets: Targets that may run parts.
        seconds: Time for measuring.
    """

    options: PartOptions
    ctx: TuningContext
    targets: tuple[Target, ...]
    seconds: float = inf
    _collaged: CollageResult | None = field(default=None, init=False)
    _is_worth: bool = field(default=True, init=False)

    def placements(self, base: Trace) -> list[Placement]:
        """Return the placements that were given and fit, and those that Collage finds; each once."""
        mod = infer_types(base.out_mod)
        given = [placement for placement in self.options.placements if _fits(placement, mod)]
        # On several devices no toolchain runs the whole, so that one target has parts as well.
        has_choice = len(self.targets) > 1 or spans_devices(mod)
        if not self.options.covers or self.ctx.control.is_over or not has_choice:
            return given
        is_measured = self.options.estimator == MEASURED
        self._collaged = self._measured(mod) if is_measured else self._estimated(mod)
        collaged = self._collaged if self._is_worth else None
        mixed = [] if collaged is None else mixed_placements(mod, collaged)
        return list(dict.fromkeys((*given, *mixed)))

    def evolve(self, candidate_of: Callable[[Placement], Trace]) -> None:
        """Evolve the placements that were found by their costs end to end.

        Args:
            candidate_of: Function that returns the candidate of a placement, without a cost.
        """
        space = None if self._collaged is None else PlacementSpace.of(self._collaged, declared_conflicts())
        if self._collaged is None or space is None or not self._is_worth:
            return
        control = self.ctx.control

        def fitness(placements: Sequence[Placement]) -> list[float | None]:
            candidates: list[Trace] = []
            for first in range(0, len(placements), _BATCH):
                if control.is_over:
                    break
                batch = [candidate_of(placement) for placement in placements[first : first + _BATCH]]
                evaluate(batch, self.ctx)
                candidates += batch
            costs = [candidate.cost for candidate in candidates]
            return [*costs, *[None] * (len(placements) - len(costs))]

        seeds = [record.placement for record in self._collaged.placements]
        generator = Random(self.options.seed)  # noqa: S311  # a search, no secrets
        evolve(space, seeds, fitness, generator, should_stop=lambda: control.is_over)

    def _estimated(self, mod: IRModule) -> CollageResult:
        options = CollageOptions(covers=self.options.covers, conflicts=declared_conflicts())
        specs, estimator = gather_partition_specs(self.targets), COST_ESTIMATORS[self.options.estimator]
        return collage(mod, specs, estimator, options=options)

    def _measured(self, mod: IRModule) -> CollageResult | None:
        """Return what is cheapest by measured parts; None if they cannot be measured, or in no time."""
        judge, control = measuring_evaluator(self.ctx.evaluator), self.ctx.control
        share = 1 - _EVOLUTION_SHARE if self.options.evolves else 1.0
        seconds = min(self.options.seconds, self.seconds, control.seconds_left)
        if judge is None or random_operators(mod):
            return None
        if seconds < LEAST_SEARCH:
            control.skip(
                "placement of parts", f"{seconds:.1f} s are left, and it needs {LEAST_SEARCH:.0f} s at least"
            )
            return None
        worth = 1.0 if control.proves else _WORTH
        try:
            with control.stopping(judge.measurer):
                searched = search_by_measured_sums(
                    judge.measurer,
                    _workload(mod, judge),
                    self.targets,
                    share * seconds,
                    self.options.covers,
                    worth,
                    control.patience,
                )
        except UnsupportedModelError as error:  # no toolchain runs some expression
            control.skip("placement of parts", error.problem)
            return None
        for function in searched.result.functions:
            if function.note:
                control.skip("placement of parts", function.note)
                self._is_worth = False
        self.ctx.node.notes.append(searched)
        return searched.result


def _workload(mod: IRModule, judge: MeasuringEvaluator) -> Workload:
    """Return a program with the inputs of the model that it was made of."""
    if mod is judge.workload.module:
        return judge.workload
    folder = judge.measurer.testbed.prepare(judge.workload)
    return Workload(
        mod, judge.workload.name, special_inputs=folder.inputs(), settings=judge.workload.settings
    )


def _fits(placement: Placement, mod: IRModule) -> bool:
    try:
        placement.applied(mod)
    except UsageError:
        return False
    return True
