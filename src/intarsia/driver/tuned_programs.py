"""Tuning passes in a run: programs after their decisions as candidates for the whole model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.collage.placement.placement import KIND, Placement
from intarsia.driver.baselines import whole_name
from intarsia.driver.contest import Contest
from intarsia.driver.entrant import Entrant
from intarsia.driver.records import Progress, Stage
from intarsia.driver.settled import settled
from intarsia.driver.tuning_record import TuningRecord
from intarsia.ir import structural_digest
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureResult
from intarsia.measure.measurer import MeasureBudget, MeasureProgress
from intarsia.support.free_names import free_name
from intarsia.target import Target
from intarsia.transform import Pass, Sequential
from intarsia.tune.candidates import evaluate
from intarsia.tune.measuring_evaluator import MeasuringEvaluator
from intarsia.tune.program_memo import ProgramMemo
from intarsia.tune.strategy import SearchLimits
from intarsia.tune.trace import Trace
from intarsia.tune.tune_in_turns import PassShare, TuneInTurns
from intarsia.tune.tuned_candidate import decisions_and_base, decisions_of
from intarsia.tune.tuning_context import TraceRecorder, TuningContext
from intarsia.tune.tuning_pass import TuningPass
from intarsia.tune.tuning_tree import TuningNode

LEAST_TUNING_SECONDS: Final = 1.0
"""With less time nothing is tried."""

MOST_TARGETS: Final = 2
"""So many targets are tuned for at most."""

_CLOSE: Final = 1.3
"""A target that takes this many times as long as the best one with the program as it is is not tuned for."""

_FINALISTS: Final = 2
"""So many programs for each target enter the contest at most."""

_PROMISING: Final = 1.02
"""A program that took this many times as long as the one as it is is left out."""

_SLICE: Final = 4
"""Trials of a slice of a tuning pass: a trial of a whole model takes seconds."""


@dataclass(frozen=True, slots=True)
class TunedPrograms:
    """What tuning passes have found for some targets.

    Attributes:
        tree: What they tried.
        shares: What each got of the time, and what came of it, in lines for people.
    """

    tree: tuple[TuningRecord, ...]
    shares: tuple[str, ...]


def enter_tuned_programs(
    contest: Contest,
    workload: Workload,
    targets: Sequence[Target],
    passes: Sequence[Pass],
    seconds: float,
) -> TunedPrograms:
    """Run tuning passes for the fastest targets, and let the best programs take part in a contest.

    The time is divided among targets, and for each among the passes by expected gain.

    Args:
        contest: Each toolchain alone has taken part already.
        workload: The program, with its inputs.
        targets: Who may run it.
        passes: In order; those that are no tuning passes just run.
        seconds: Time for measuring.

    Raises:
        IntarsiaError: Measuring is impossible.
    """
    results = contest.results()
    known = {target: results.get((str(target), WHOLE.digest)) for target in targets}
    chosen = _fastest({target: each for target, each in known.items() if each is not None and each.is_ok})
    tree, lines, made = [], [], ProgramMemo()
    begun = contest.measurer.spent

    def tell(progress: MeasureProgress) -> None:
        contest.report(Progress(Stage.TUNE, min(1.0, (contest.measurer.spent - begun) / seconds), progress))

    for target in chosen:
        if contest.should_stop():
            break
        contest.measurer.on_progress = tell
        run = _Run(contest, workload, target, seconds / len(chosen), made)
        found = run.tuned(known[target], passes)
        tree.append(_record(found))
        lines += [f"{whole_name(target)}: {share}" for share in run.shares]
        contest.enter_new(run.entrants(found))
    return TunedPrograms(tuple(tree), tuple(lines))


class _Run:
    """Tuning for one target."""

    def __init__(
        self, contest: Contest, workload: Workload, target: Target, seconds: float, made: ProgramMemo
    ) -> None:
        self.shares: list[PassShare] = []
        self._made = made
        self._contest = contest
        self._target = target
        self._seconds = seconds
        self._evaluator = MeasuringEvaluator(
            workload, target, contest.measurer, budget=MeasureBudget(seconds), by_decisions=True
        )

    def tuned(self, whole: MeasureResult | None, passes: Sequence[Pass]) -> TuningNode:
        """What was tried."""
        evaluator, measurer = self._evaluator, self._contest.measurer
        mod = evaluator.workload.module
        if whole is not None:
            evaluator.learn(mod, whole)
        ctx = TuningContext(evaluator, self._made, on_wait=measurer.testbed.on_wait)
        ctx.node.name = whole_name(self._target)
        if any(isinstance(item, TuningPass) for item in passes):
            limits = SearchLimits(seconds=self._seconds, should_stop=self._is_over)
            clock = lambda: measurer.spent  # noqa: E731  # what is known counts as when it was measured
            TuneInTurns(tuple(passes), limits, _SLICE, self.shares.extend, clock)(mod, ctx)
        else:
            inner = ctx.recording(Trace(mod))
            Sequential(passes, name="passes")(mod, inner)
            assert isinstance(inner.trace, TraceRecorder)
            evaluate([inner.trace.tuned], ctx)
        return ctx.node

    def _is_over(self) -> bool:
        """Whether candidates would not be measured any more: then none are made."""
        return self._evaluator.is_spent or self._contest.should_stop()

    def entrants(self, tree: TuningNode) -> list[Entrant]:
        """The best programs that are not the one as it is, nor much slower."""
        mod = self._evaluator.workload.module
        traces: dict[str, Trace] = {}
        for each in sorted(_evaluated(tree), key=lambda each: len(decisions_of(each))):
            traces.setdefault(structural_digest(each.out_mod), each)
        whole = traces.pop(structural_digest(mod), None)
        most = math.inf if whole is None or whole.perf is None else whole.perf * _PROMISING
        ranked = sorted((each.perf or 0.0, digest) for digest, each in traces.items())
        best = [traces[digest] for cost, digest in ranked if cost < min(most, math.inf)][:_FINALISTS]
        found: list[Entrant] = []
        for each in best:
            item = settled(self._evaluator.input(each))
            names = [*(one.name for one in self._contest.entrants), *(one.name for one in found)]
            found.append(Entrant(_name(item, names), item))
        return found


def _record(node: TuningNode, *, is_chosen: bool = False) -> TuningRecord:
    """A tree as records."""
    trace, best = node.trace, node.best
    works = trace is not None and trace.perf is not None and math.isfinite(trace.perf)
    fate = "" if trace is None or works else trace.fate or "not evaluated"
    children = tuple(
        _record(child, is_chosen=best is not None and child.trace is best) for child in node.children
    )
    seconds = trace.perf if trace is not None and works else None
    return TuningRecord(node.name, trace is not None, seconds, fate, is_chosen, children)


def _fastest(results: dict[Target, MeasureResult]) -> list[Target]:
    ranked = sorted(results, key=lambda target: results[target].cost)
    limit = _CLOSE * min((each.cost for each in results.values()), default=math.inf)
    return [target for target in ranked if results[target].cost <= limit][:MOST_TARGETS]


def _name(item: MeasureInput, taken: Sequence[str]) -> str:
    """Who runs it, and that decisions come before; a number if that is taken."""
    decisions, base = decisions_and_base(item.candidate)
    who = Placement.of_candidate(base).summary if base.kind == KIND else whole_name(item.target)
    return free_name(f"{who} tuned" if decisions else who, taken, " ({})", 2)


def _evaluated(node: TuningNode) -> Iterator[Trace]:
    if node.trace is not None and node.trace.perf is not None:
        yield node.trace
    for child in node.children:
        yield from _evaluated(child)
