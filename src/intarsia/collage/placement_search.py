"""The search of `TunePlacement`: wholes first, then parts of the program that the best whole gets."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from intarsia.collage.collage import CollageResult, collage
from intarsia.collage.collage_partition import MEASURED
from intarsia.collage.conflicts import declared_conflicts
from intarsia.collage.costs.cost_estimator import COST_ESTIMATORS
from intarsia.collage.function_search import CollageOptions
from intarsia.collage.gather_specs import gather_partition_specs
from intarsia.collage.placement.partitioned import partitioned
from intarsia.collage.placement.placement import Placement
from intarsia.collage.planned_devices import spans_devices
from intarsia.collage.search_placements import LEAST_SEARCH, mixed_placements, search_placements
from intarsia.ir import IRModule
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.work import random_operators
from intarsia.op.infer import infer_types
from intarsia.support.errors import UnsupportedModelError, UsageError
from intarsia.support.free_names import free_name
from intarsia.target import Target
from intarsia.transform import Pass
from intarsia.tune.candidates import evaluate, select_best_candidate
from intarsia.tune.choice import Choice
from intarsia.tune.extension import after_passes, extended
from intarsia.tune.instruction import Instruction
from intarsia.tune.measuring_evaluator import MeasuringEvaluator
from intarsia.tune.strategy import SearchLimits
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_tree import TuningNode
from intarsia.tune.whole_evaluator import WholeEvaluator, measuring_evaluator

PLACEMENT: Final = "placement"
"""Name of the instruction."""


class PlacementOptions(Protocol):
    """What a search reads of the options of `TunePlacement`, which says what they mean."""

    @property
    def eval_passes(self) -> Sequence[Pass]:
        """Passes before the program is given to a target as a whole."""

    @property
    def toolchain_passes(self) -> Mapping[str, Sequence[Pass]] | Sequence[tuple[str, Sequence[Pass]]]:
        """Passes behind those, by name of a toolchain."""

    @property
    def placed_passes(self) -> Sequence[Pass]:
        """Passes behind each placement."""

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
    def limits(self) -> SearchLimits:
        """When the search stops."""


@dataclass(slots=True)
class PlacementSearch:
    """One search of a placement.

    Attributes:
        options: The options of the pass.
        ctx: Context that it runs under.
        targets: Targets that may run parts; distinct.
        clock: Clock, in seconds.
    """

    options: PlacementOptions
    ctx: TuningContext
    targets: tuple[Target, ...]
    clock: Callable[[], float] = time.monotonic
    _begun: float = field(init=False)
    _tried: int = 0

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def best(self, trace: Trace) -> Trace:
        """The best of all candidates; the trace itself if the limits leave no room for any.

        Raises:
            UsageError: There is no such estimator, or a pass before the placement gives something away.
            IntarsiaError: Measuring is impossible.
        """
        if spans_devices(trace.out_mod):
            return self._best_on_devices(trace)
        wholes = self._wholes(trace)
        if not wholes:
            return trace.copy()
        ended = [placed for _, placed in wholes]
        evaluate(ended, self.ctx)
        base, _ = min(wholes, key=lambda each: each[1].cost)
        parts = self._parts(base)
        evaluate(parts, self.ctx)
        return select_best_candidate([*ended, *parts])

    def _best_on_devices(self, trace: Trace) -> Trace:
        """The best placement of parts, each on one device: no toolchain runs all of the program."""
        if self._is_over:
            return trace.copy()
        parts = self._parts(_through(self.options.eval_passes, trace, self.ctx, self.ctx.node))
        evaluate(parts, self.ctx)
        return select_best_candidate(parts) if parts else trace.copy()

    def _wholes(self, trace: Trace) -> list[tuple[Trace, Trace]]:
        """For each target the program that it would get, and that program when it is given to it."""
        instruction, candidates = whole_on_each(self.targets), []
        for key, target in zip(instruction.decisions, self.targets, strict=True):
            if self._is_over:
                break
            node = self.ctx.node.add(key)
            judge = WholeEvaluator(self.ctx.evaluator, target, instruction, key)
            toolchain_passes = dict(self.options.toolchain_passes).get(str(target.toolchain), ())
            opened = _through((*self.options.eval_passes, *toolchain_passes), trace, self.ctx, node, judge)
            placed = opened if opened.has_failed else judge.place_whole(opened)
            if opened.size > trace.size and not placed.has_failed:  # then a cost is that on the target
                placed.perf, placed.fate = opened.perf, opened.fate
            candidates.append((opened, self._ended(placed, node)))
        return candidates

    def _parts(self, base: Trace) -> list[Trace]:
        """The placements of parts of a program as candidates."""
        choices = dict(whole_on_each(self.targets).by_key)
        for placement in self._placements(base):
            key = free_name(placement.summary, choices, " ({})", 2)
            choices[key] = Choice(partitioned, {"partitions": placement.candidate.trace})
        instruction, candidates = Instruction(PLACEMENT, choices), list[Trace]()
        for key in instruction.decisions[len(self.targets) :]:
            if self._is_over:
                break
            placed = extended(base.reopened(), instruction, key, self.ctx)
            assert placed is not None, "a placement has no constraint"
            candidates.append(self._ended(placed, self.ctx.node.add(key)))
        return candidates

    def _ended(self, placed: Trace, node: TuningNode) -> Trace:
        """A candidate behind the passes that decide on functions of toolchains."""
        self._tried += 1
        node.trace = _through(self.options.placed_passes, placed, self.ctx, node)
        return node.trace

    def _placements(self, base: Trace) -> list[Placement]:
        """Those that were given and fit, and those that Collage finds; each once."""
        mod = infer_types(base.out_mod)
        given = [each for each in self.options.placements if _fits(each, mod)]
        if not self.options.covers or self._is_over:
            return given
        collage = self._measured(mod) if self.options.estimator == MEASURED else self._estimated(mod)
        return list(dict.fromkeys((*given, *(mixed_placements(mod, collage) if collage else ()))))

    def _estimated(self, mod: IRModule) -> CollageResult:
        options = CollageOptions(covers=self.options.covers, conflicts=declared_conflicts())
        specs, estimator = gather_partition_specs(self.targets), COST_ESTIMATORS[self.options.estimator]
        return collage(mod, specs, estimator, options=options)

    def _measured(self, mod: IRModule) -> CollageResult | None:
        """What is cheapest by measured parts; None if they cannot be measured, or in no time."""
        judge = measuring_evaluator(self.ctx.evaluator)
        limits = self.options.limits
        seconds = min(self.options.seconds, limits.seconds - (self.clock() - self._begun))
        if judge is None or seconds < LEAST_SEARCH or random_operators(mod):
            return None
        with _stopping(judge.measurer, limits.should_stop):
            try:
                return search_placements(
                    judge.measurer, _workload(mod, judge), self.targets, seconds, self.options.covers
                )[0]
            except UnsupportedModelError:  # no toolchain runs some operator: no placement has all of them
                return None

    @property
    def _is_over(self) -> bool:
        limits = self.options.limits
        is_late = self.clock() - self._begun >= limits.seconds
        return self._tried >= limits.trials or is_late or limits.should_stop()


def whole_on_each(targets: Sequence[Target]) -> Instruction:
    """The decision on which target the whole program is: by name of the toolchain, where that is clear."""
    names = [str(each.toolchain) for each in targets]
    keyed = {
        name if names.count(name) == 1 else str(target): target
        for name, target in zip(names, targets, strict=True)
    }
    choices = {key: Choice("PartitionWhole", {"target": str(target)}) for key, target in keyed.items()}
    return Instruction(PLACEMENT, choices)


def _through(
    passes: Sequence[Pass],
    trace: Trace,
    ctx: TuningContext,
    node: TuningNode,
    evaluator: WholeEvaluator | None = None,
) -> Trace:
    """A trace behind passes.

    Args:
        passes: Heuristic ones add a decision, tuning ones their best decisions.
        trace: Trace that candidates begin with.
        ctx: Context that they run under.
        node: Node of the tuning tree that records the candidates.
        evaluator: Evaluator of candidates; default: that of the context.
    """
    inner = copy.copy(ctx)
    inner.evaluator = evaluator or ctx.evaluator
    inner.node = node
    return after_passes(passes, trace, inner)


def _workload(mod: IRModule, judge: MeasuringEvaluator) -> Workload:
    """A program with the inputs of the model that it was made of."""
    if mod is judge.workload.module:
        return judge.workload
    folder = judge.measurer.testbed.prepare(judge.workload)
    return Workload(
        mod, judge.workload.name, special_inputs=folder.inputs(), settings=judge.workload.settings
    )


@contextmanager
def _stopping(measurer: Measurer, should_stop: Callable[[], bool]) -> Iterator[None]:
    """Add a condition to those that stop a measurer."""
    before = measurer.should_stop
    measurer.should_stop = lambda: before() or should_stop()
    try:
        yield
    finally:
        measurer.should_stop = before


def _fits(placement: Placement, mod: IRModule) -> bool:
    try:
        placement.applied(mod)
    except UsageError:
        return False
    return True
