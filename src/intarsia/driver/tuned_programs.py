"""Tuning passes in a run: their best programs as candidates for the whole model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.collage.placement.placement import KIND, Placement
from intarsia.driver.baselines import whole_name
from intarsia.driver.contest import Contest
from intarsia.driver.entrant import Entrant, candidate_key
from intarsia.driver.records import Progress, TuneStage
from intarsia.driver.settled import settled
from intarsia.driver.tuning_record import TuningRecord
from intarsia.ir import IRModule, structural_digest
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
"""Minimum seconds for tuning passes."""

MOST_TARGETS: Final = 2
"""Maximum number of targets that are tuned for."""

_CLOSE: Final = 1.3
"""Ratio to the fastest baseline above which a target is not tuned for."""

_FINALISTS: Final = 2
"""Maximum number of programs per target that enter the contest."""

_PROMISING: Final = 1.02
"""Ratio to the unchanged program above which a program is dropped."""

_SLICE: Final = 4
"""Trials per slice of a tuning pass: few, because a trial of a whole model takes seconds."""


@dataclass(frozen=True, slots=True)
class TunedPrograms:
    """Results of tuning passes for some targets.

    Attributes:
        tree: Candidates of each target.
        shares: Lines of text with the time share and the result of each pass.
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
    """Run tuning passes for the fastest targets, and enter the best programs into a contest.

    The time is divided among targets, and for each among the passes by expected gain.

    Args:
        contest: Contest in which the baselines were measured.
        workload: The program, with its inputs.
        targets: Targets that may run it.
        passes: Passes in order; those that are no tuning passes are just applied.
        seconds: Time for measuring.

    Raises:
        IntarsiaError: Measuring is impossible.
    """
    results = contest.results()
    baselines = {
        target: results.get(candidate_key(MeasureInput(workload, target, WHOLE))) for target in targets
    }
    chosen = _fastest(
        {target: result for target, result in baselines.items() if result is not None and result.is_ok}
    )
    tree, lines, programs_once = [], [], ProgramMemo()
    begun = contest.measurer.spent

    def report_progress(progress: MeasureProgress) -> None:
        contest.report(
            Progress(TuneStage.TUNE, min(1.0, (contest.measurer.spent - begun) / seconds), progress)
        )

    for target in chosen:
        if contest.should_stop():
            break
        contest.measurer.on_progress = report_progress
        run = _Run(contest, workload, target, seconds / len(chosen), programs_once)
        root = run.run_passes(baselines[target], passes)
        tree.append(_record(root))
        lines += [f"{whole_name(target)}: {share}" for share in run.shares]
        contest.enter_new(run.entrants(root))
    return TunedPrograms(tuple(tree), tuple(lines))


class _Run:
    """Tuning for one target."""

    def __init__(
        self, contest: Contest, workload: Workload, target: Target, seconds: float, programs_once: ProgramMemo
    ) -> None:
        self.shares: list[PassShare] = []
        self._programs_once = programs_once
        self._contest = contest
        self._target = target
        self._seconds = seconds
        self._evaluator = MeasuringEvaluator(
            workload, target, contest.measurer, budget=MeasureBudget(seconds), by_decisions=True
        )

    def run_passes(self, whole: MeasureResult | None, passes: Sequence[Pass]) -> TuningNode:
        """Run the passes, and return the tree of candidates."""
        evaluator, measurer = self._evaluator, self._contest.measurer
        mod = evaluator.workload.module
        if whole is not None:
            evaluator.learn(mod, whole)
        ctx = TuningContext(evaluator, self._programs_once, on_wait=measurer.testbed.on_wait)
        ctx.node.name = whole_name(self._target)
        if any(isinstance(item, TuningPass) for item in passes):
            limits = SearchLimits(seconds=self._seconds, should_stop=self._is_over)
            clock = lambda: measurer.spent  # noqa: E731  # known measurements cost what they cost when they were taken
            TuneInTurns(tuple(passes), limits, _SLICE, self.shares.extend, clock)(mod, ctx)
        else:
            inner = ctx.recording(Trace(mod))
            Sequential(passes, name="passes")(mod, inner)
            assert isinstance(inner.trace, TraceRecorder)
            evaluate([inner.trace.tuned], ctx)
        return ctx.node

    def _is_over(self) -> bool:
        """Whether no candidate would be measured any more: then none is generated."""
        return self._evaluator.is_spent or self._contest.should_stop()

    def entrants(self, tree: TuningNode) -> list[Entrant]:
        """Return the best changed programs that are not much slower than the unchanged one."""
        chosen: list[Entrant] = []
        for trace in best_programs(tree, self._evaluator.workload.module):
            item = settled(self._evaluator.input(trace))
            names = [
                *(entrant.name for entrant in self._contest.entrants),
                *(entrant.name for entrant in chosen),
            ]
            chosen.append(Entrant(_name(item, names), item))
        return chosen


def best_programs(tree: TuningNode, mod: IRModule) -> list[Trace]:
    """Return the fastest changed programs of a tuning tree, at most two, none much slower than it is.

    The tree also holds candidates for parts of the program. They take a fraction of its time, and compute
    something else: they are left out.

    Args:
        tree: Tuning tree with the candidates.
        mod: The program that was tuned.
    """
    traces: dict[str, Trace] = {}
    of_program = [trace for trace in _evaluated(tree) if trace.in_mod is mod]
    for trace in sorted(of_program, key=lambda trace: len(decisions_of(trace))):
        traces.setdefault(structural_digest(trace.out_mod), trace)
    whole = traces.pop(structural_digest(mod), None)
    most = math.inf if whole is None else whole.cost * _PROMISING
    ranked = sorted((trace.cost, digest) for digest, trace in traces.items())
    return [traces[digest] for cost, digest in ranked if cost < min(most, math.inf)][:_FINALISTS]


def _record(node: TuningNode, *, is_chosen: bool = False) -> TuningRecord:
    """Return a tree as records."""
    trace, best = node.trace, node.best
    works = trace is not None and trace.perf is not None and math.isfinite(trace.perf)
    fate = node.remark if trace is None or works else trace.fate or "not evaluated"
    children = tuple(
        _record(child, is_chosen=best is not None and child.trace is best) for child in node.children
    )
    seconds = trace.perf if trace is not None and works else None
    return TuningRecord(node.name, trace is not None, seconds, fate, is_chosen, children)


def _fastest(results: dict[Target, MeasureResult]) -> list[Target]:
    ranked = sorted(results, key=lambda target: results[target].cost)
    limit = _CLOSE * min((result.cost for result in results.values()), default=math.inf)
    return [target for target in ranked if results[target].cost <= limit][:MOST_TARGETS]


def _name(item: MeasureInput, taken: Sequence[str]) -> str:
    """Return a free name: the toolchains, "tuned" after decisions, and a number if the name is taken."""
    decisions, base = decisions_and_base(item.candidate)
    toolchains = Placement.of_candidate(base).summary if base.kind == KIND else whole_name(item.target)
    return free_name(f"{toolchains} tuned" if decisions else toolchains, taken, " ({})", 2)


def _evaluated(node: TuningNode) -> Iterator[Trace]:
    if node.trace is not None and node.trace.perf is not None:
        yield node.trace
    for child in node.children:
        yield from _evaluated(child)
