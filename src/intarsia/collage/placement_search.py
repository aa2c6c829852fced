"""The search of `TunePlacement`: wholes first, then parts of the program that the best whole gets.

Programs are compared as wholes, end to end. `search_by_measured_sums` proposes their parts by sums of costs.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Final, Protocol

from intarsia.collage.collage_partition import MEASURED
from intarsia.collage.evolution.placement_space import is_whole
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.part_search import PartOptions, PartSearch
from intarsia.collage.placement.partitioned import partitioned
from intarsia.collage.placement.placement import Placement
from intarsia.collage.planned_devices import spans_devices
from intarsia.collage.tune_targets import tune_targets
from intarsia.support.free_names import free_name
from intarsia.target import Target
from intarsia.transform import Pass
from intarsia.tune.candidates import evaluate, select_best_candidate
from intarsia.tune.choice import Choice
from intarsia.tune.extension import after_passes, extended
from intarsia.tune.instruction import Instruction
from intarsia.tune.strategy import SearchLimits
from intarsia.tune.target_options import marked_functions
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_tree import TuningNode
from intarsia.tune.whole_evaluator import WholeEvaluator

PASS_SHARE: Final = 0.5
"""Share of the time that passes on whole programs may take where a mix is likely to gain behind them: passes
go on as long as there is time. A rule of thumb, not measured. Elsewhere they may take all of it: half of it
was too little for what TuneKernelsJointly gains on Inception in a budget of 20 s, and no part was searched
in what was left."""

MIX_REACH: Final = 2.0
"""Ratio to the fastest whole above which a toolchain that runs the whole program gets no parts: an engine
that needs twice the time of another is hardly the faster one on enough operators. A rule of thumb; in the
mixes that win in `benchmarks.mixed_models` the slower toolchain lacks an operator."""

EVOLUTION_REACH: Final = 1.1
"""Ratio of the best mix to the fastest whole, each measured end to end, above which mixes are not evolved."""

UNPROVEN: Final = 1.02
"""Ratio of single measurements that noise makes: with less gain parts are searched in the unchanged program,
of which the reference result and the wholes are known already."""

PLACEMENT: Final = "placement"
"""Name of the instruction."""


class PlacementOptions(PartOptions, Protocol):
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
    def target_passes(self) -> Mapping[str, Sequence[Pass]] | Sequence[tuple[str, Sequence[Pass]]]:
        """Passes on the options of targets, by name of a toolchain."""

    @property
    def reach(self) -> float | None:
        """Largest ratio at which a target may still catch up."""

    @property
    def limits(self) -> SearchLimits:
        """When the search stops."""


@dataclass(frozen=True, slots=True, eq=False)
class WholeCandidate:
    """A program for one target.

    Attributes:
        opened: The program after its passes, before it is placed.
        placed: Program that is given to the target.
    """

    opened: Trace
    placed: Trace

    @property
    def cost(self) -> float:
        """Cost of the placed program; infinite if it fails or was not evaluated."""
        return self.placed.cost


@dataclass(slots=True)
class PlacementSearch:
    """One search of a placement.

    Attributes:
        options: The options of the pass.
        ctx: Context that it runs under.
        targets: Targets that may run parts; distinct. Their passes may give them options.
        clock: Clock, in seconds.
    """

    options: PlacementOptions
    ctx: TuningContext
    targets: tuple[Target, ...]
    clock: Callable[[], float] = time.monotonic
    _begun: float = field(init=False)
    _tried: int = 0
    _unchanged: dict[Target, Trace] = field(default_factory=dict)
    """The program as it is on each target."""

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
        if self.options.target_passes and not self._is_over:
            placed = {
                target: self._placed(trace, key).placed
                for key, target in zip(whole_on_each(self.targets).decisions, self.targets, strict=True)
            }
            self._unchanged = tune_targets(dict(self.options.target_passes), placed, self.ctx)
            self.targets = tuple(self._unchanged)
        wholes = self._wholes(trace) if self.options.reach is None else self._wholes_in_reach(trace)
        if not wholes:
            return trace.copy()
        evaluate([whole.placed for whole in wholes], self.ctx)
        parts = self._parts(self._opened(wholes), wholes)
        evaluate(parts, self.ctx)
        return select_best_candidate([*(whole.placed for whole in wholes), *parts])

    def _opened(self, wholes: Sequence[WholeCandidate]) -> Trace:
        """The program of the best whole; the unchanged one if passes have not clearly made it faster."""
        best = min(wholes, key=lambda whole: whole.cost)
        unproven = UNPROVEN * best.cost
        unchanged = next(
            (whole for whole in wholes if whole.cost <= unproven and not whole.opened.size), None
        )
        return (unchanged or best).opened

    def _best_on_devices(self, trace: Trace) -> Trace:
        """The best placement of parts, each on one device: no toolchain runs all of the program."""
        if self._is_over:
            return trace.copy()
        parts = self._parts(_through(self.options.eval_passes, trace, self.ctx, self.ctx.node), ())
        evaluate(parts, self.ctx)
        return select_best_candidate(parts) if parts else trace.copy()

    def _wholes(self, trace: Trace) -> list[WholeCandidate]:
        """For each target the program that it would get, and that program when it is given to it."""
        candidates = []
        for key in whole_on_each(self.targets).decisions:
            if self._is_over:
                break
            candidates.append(self._whole(trace, key))
        return candidates

    def _wholes_in_reach(self, trace: Trace) -> list[WholeCandidate]:
        """The program as it is on each target, and after the passes on those that may become the fastest.

        The fastest target comes first. Another one can catch up if it is as fast with the largest gain so
        far, or with the gain that `reach` allows for.
        """
        keys = whole_on_each(self.targets).decisions
        plain = {key: self._placed(trace, key) for key in keys}
        evaluate([whole.placed for whole in plain.values()], self.ctx)
        candidates = list(plain.values())  # where all have failed, parts are searched all the same
        fastest = min((whole.cost for whole in candidates), default=inf)
        if not self.options.eval_passes:
            return candidates
        gain, reach = 1.0, self.options.reach or 1.0
        ctx = self._context_of_passes([whole.cost for whole in plain.values()])
        for key in sorted(keys, key=lambda key: plain[key].cost):
            ratio = plain[key].cost / fastest if isfinite(fastest) else inf
            if ratio > max(gain, reach):
                self._skip_target(key, ratio, gain)
                continue
            if self._is_over or ctx.control.is_over:
                self.ctx.control.skip(f"tuning passes for {key}", f"{ctx.control.ending} before its turn")
                break
            tuned = self._whole(trace, key, ctx)
            evaluate([tuned.placed], self.ctx)
            gain = max(gain, plain[key].cost / tuned.cost)
            fastest = min(fastest, tuned.cost)
            candidates.append(tuned)
        return candidates

    def _context_of_passes(self, costs: Sequence[float]) -> TuningContext:
        """The context of passes on whole programs, which leaves time for parts where a mix is likely to win.

        That is where a toolchain lacks the whole program, or is nearly as fast as the fastest one. The passes
        end when they gain nothing.

        Args:
            costs: Costs of the program as it is on each target.
        """
        control = self.ctx.control
        near = (self.options.reach or 1.0) * min(costs, default=inf)
        candidates = [cost for cost in costs if cost <= near or not isfinite(cost)]
        is_likely = len(candidates) > 1 or bool(self.options.placements) or control.proves
        is_shared = self.options.covers and is_likely and isfinite(control.seconds_left)
        seconds = PASS_SHARE * control.seconds_left if is_shared else inf
        return self.ctx.within(control.part(seconds=seconds, gains_soon=True))

    def _skip_target(self, key: str, ratio: float, gain: float) -> None:
        reason = "it does not run the program"
        if isfinite(ratio):
            gained = f"; passes have gained a factor of {gain:.2f} so far, unproven" if gain > 1 else ""
            reason = (
                f"by single measurements it is {ratio:.2f} times as slow as the fastest, "
                f"too far behind to catch up{gained}"
            )
        self.ctx.control.skip(f"tuning passes for {key}", reason)

    def _whole(self, trace: Trace, key: str, ctx: TuningContext | None = None) -> WholeCandidate:
        """The program after the passes for a target, and when it is given to it."""
        ctx = ctx or self.ctx
        instruction = whole_on_each(self.targets)
        target = dict(zip(instruction.decisions, self.targets, strict=True))[key]
        node = self.ctx.node.add(key)
        judge = WholeEvaluator(self.ctx.evaluator, target, instruction, key)
        toolchain_passes = dict(self.options.toolchain_passes).get(str(target.toolchain), ())
        opened = _through((*self.options.eval_passes, *toolchain_passes), trace, ctx, node, judge)
        placed = opened if opened.has_failed else judge.place_whole(opened)
        if opened.size > trace.size and not placed.has_failed:  # then a cost is that on the target
            placed.perf, placed.fate = opened.perf, opened.fate
        return WholeCandidate(opened, self._ended(placed, node))

    def _placed(self, trace: Trace, key: str) -> WholeCandidate:
        """The program as it is, given to a target."""
        instruction = whole_on_each(self.targets)
        target = dict(zip(instruction.decisions, self.targets, strict=True))[key]
        placed = self._unchanged.get(target) or extended(trace.reopened(), instruction, key, self.ctx)
        assert placed is not None, "a placement has no constraint"
        return WholeCandidate(trace, placed)

    def _parts(self, opened: Trace, wholes: Sequence[WholeCandidate]) -> list[Trace]:
        """The placements of parts of a program as candidates.

        Args:
            opened: The program that the best target alone gets.
            wholes: Candidates that one target runs; their options are those of the parts.
        """
        is_given_away = any(True for _ in marked_functions(opened.out_mod))
        base = Trace(opened.in_mod) if is_given_away else opened
        parts = PartSearch(self.options, self.ctx, self._part_targets(wholes), self._seconds_left)
        choices, graph = dict(whole_on_each(self.targets).by_key), DataflowGraph.of(base.out_mod["main"])
        names: dict[str, Placement] = {}
        candidates: list[Trace] = []

        def candidate_of(placement: Placement) -> Trace:
            key = free_name(placement.summary, [*choices, *names], " ({})", 2)
            names[key] = placement
            choice = _choice(placement, graph)
            instruction = Instruction(PLACEMENT, {**choices, key: choice})
            placed = extended(base.reopened(), instruction, key, self.ctx)
            assert placed is not None, "a placement has no constraint"
            candidates.append(self._ended(placed, self.ctx.node.add(key)))
            return candidates[-1]

        for placement in parts.placements(base):
            if self._is_over:
                break
            candidate_of(placement)
        evaluate(candidates, self.ctx)
        if self.options.evolves and not self._is_over and self._can_catch_up(candidates, wholes):
            parts.evolve(candidate_of)
        return candidates

    def _can_catch_up(self, mixes: Sequence[Trace], wholes: Sequence[WholeCandidate]) -> bool:
        """Whether mixes that evolve from these may still become faster than the fastest whole.

        Mixes of estimated parts say little: they are always evolved.
        """
        if self.options.estimator != MEASURED or self.ctx.control.proves:
            return True
        whole = min((whole.cost for whole in wholes), default=inf)
        best = min((mix.cost for mix in mixes), default=inf)
        if not isfinite(whole) or not mixes or best <= EVOLUTION_REACH * whole:
            return True
        ratio = f"the best one takes {best / whole:.2f} times as long as the fastest toolchain alone"
        self.ctx.control.skip("the evolution of mixes", ratio if isfinite(best) else "none of them works")
        return False

    def _part_targets(self, wholes: Sequence[WholeCandidate]) -> tuple[Target, ...]:
        """The targets of parts: with the options that made the program fastest on each toolchain.

        Those that are far slower with the whole program have none, if the placement says how far is too far.
        """
        best: dict[Target, tuple[float, Target]] = {target: (inf, target) for target in self.targets}
        for whole in wholes:
            marked = [function.target for function in marked_functions(whole.placed.out_mod)]
            target = marked[0] if marked else None
            for plain, (cost, _) in best.items():
                if target is not None and target.toolchain == plain.toolchain and whole.cost < cost:
                    best[plain] = whole.cost, target
        fastest = min((cost for cost, _ in best.values()), default=inf)
        limited = self.options.reach is not None and isfinite(fastest) and not self.ctx.control.proves
        for cost, target in best.values() if limited else ():
            if isfinite(cost) and cost > MIX_REACH * fastest:
                ratio = f"it takes {cost / fastest:.1f} times as long as the fastest for the whole program"
                self.ctx.control.skip(f"parts on {target.toolchain}", ratio)
        most = MIX_REACH * fastest if limited else inf
        near = [target for cost, target in best.values() if cost <= most or not isfinite(cost)]
        return tuple(dict.fromkeys(near))

    def _ended(self, placed: Trace, node: TuningNode) -> Trace:
        """A candidate behind the passes that decide on functions of toolchains."""
        self._tried += 1
        node.trace = _through(self.options.placed_passes, placed, self.ctx, node)
        return node.trace

    @property
    def _seconds_left(self) -> float:
        return self.options.limits.seconds - (self.clock() - self._begun)

    @property
    def _is_over(self) -> bool:
        is_late = self._seconds_left <= 0
        return self._tried >= self.options.limits.trials or is_late or self.ctx.control.is_over


def whole_on_each(targets: Sequence[Target]) -> Instruction:
    """The decision on which target the whole program is: by name of the toolchain, where that is clear."""
    names = [str(each.toolchain) for each in targets]
    keyed = {
        name if names.count(name) == 1 else str(target): target
        for name, target in zip(names, targets, strict=True)
    }
    choices = {key: Choice("PartitionWhole", {"target": str(target)}) for key, target in keyed.items()}
    return Instruction(PLACEMENT, choices)


def _choice(placement: Placement, graph: DataflowGraph) -> Choice:
    """Return the choice of a placement; one toolchain that runs all gets the program as a whole."""
    if is_whole(graph, placement):
        return Choice("PartitionWhole", {"target": placement.partitions[0].target})
    return Choice(partitioned, {"partitions": placement.candidate.trace})


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
