"""The tuning pipeline in a run: its passes decide, and the best programs take part in the contest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from intarsia.autoschedule.tuning.schedule_records import ScheduleRow, ScheduleRows
from intarsia.autoschedule.tuning.tune_schedule import TuneSchedule
from intarsia.collage.placement.placement import KIND, Placement
from intarsia.collage.search_by_measured_sums import SearchedPartitions
from intarsia.collage.tune_device_placement import TuneDevicePlacement
from intarsia.collage.tune_placement import TunePlacement
from intarsia.driver.baselines import whole_name
from intarsia.ir import IRModule, structural_digest
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.report.run_records import PassShareRecord
from intarsia.report.tuning_record import TuningRecord
from intarsia.support.free_names import free_name
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.toolchain.native.toolchain import Native
from intarsia.transform import Pass, Sequential
from intarsia.tune.contest.contest import Contest
from intarsia.tune.contest.entrant import Entrant
from intarsia.tune.measuring_evaluator import MeasuringEvaluator
from intarsia.tune.placed_candidate import placement_alone
from intarsia.tune.run_control import RunControl
from intarsia.tune.target_options import marked_functions
from intarsia.tune.trace import Trace
from intarsia.tune.tune_in_turns import PassShare, TuneInTurns
from intarsia.tune.tuned_candidate import decisions_and_base, decisions_of
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass
from intarsia.tune.tuning_tree import TuningNode

REACH: Final = 1.15
"""Ratio to the fastest baseline up to which tuning passes may let another target catch up."""

_FINALISTS: Final = 4
"""Maximum number of programs that enter the contest."""

_PROMISING: Final = 1.02
"""Ratio to the fastest unchanged program above which a program is dropped."""

_SLICE: Final = 4
"""Trials per slice of a tuning pass: few, because a trial of a whole model takes seconds."""


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """Results of a tuning pipeline.

    Attributes:
        tree: Candidates of the passes.
        notes: Lines of text: the time share and the result of each pass, and what was left out and why.
        searched: Result of the search of placements of parts, if there was one.
        schedules: Kernels of the schedule search, if there was one.
        shares: Shares of the passes in the budget.
    """

    tree: tuple[TuningRecord, ...]
    notes: tuple[str, ...]
    searched: SearchedPartitions | None
    schedules: tuple[ScheduleRow, ...] = ()
    shares: tuple[PassShareRecord, ...] = ()


def whole_pipeline(
    passes: Sequence[Pass],
    targets: Sequence[Target],
    *,
    searches_parts: bool,
    placements: Sequence[Placement] = (),
    seed: int = 0,
) -> Pass:
    """Return the passes as one: they decide for each target, and parts are placed after them.

    Schedules come first: native with the best ones is the target of the other passes. Passes that place the
    program themselves are taken as they are.

    Args:
        passes: Passes in order.
        targets: Targets that may run the program or parts of it.
        searches_parts: Whether different toolchains may run parts.
        placements: Known placements of parts.
        seed: Random seed of the search of parts.
    """
    if any(isinstance(item, TunePlacement | TuneDevicePlacement) for item in passes):
        return _in_turns(passes)
    has_native = any(target.toolchain == Native.name for target in targets)
    schedules = [item for item in passes if isinstance(item, TuneSchedule)]
    passes = [item for item in passes if item not in schedules]
    if not has_native:
        # That rewriting gains little is known of native only, which simplifies programs itself.
        passes = [
            replace(item, expected_gain=None) if isinstance(item, TuningPass) else item for item in passes
        ]
    return TunePlacement(
        target_passes={Native.name: schedules} if has_native and schedules else (),
        eval_passes=(_in_turns(passes),) if passes else (),
        targets=tuple(map(str, targets)),
        placements=tuple(placements) if searches_parts else (),
        seconds=math.inf,
        covers=4 if searches_parts else 0,
        evolves=searches_parts,
        reach=REACH,
        seed=seed,
    )


def _in_turns(passes: Sequence[Pass]) -> Pass:
    if any(isinstance(item, TuningPass) for item in passes):
        return TuneInTurns(tuple(passes), slice_trials=_SLICE)
    return Sequential(passes, name="passes")


def run_pipeline(contest: Contest, workload: Workload, pipeline: Pass, control: RunControl) -> PipelineResult:
    """Run a pipeline of tuning passes, and enter the best programs into a contest.

    Args:
        contest: Contest in which the baselines were measured.
        workload: The program, with its inputs.
        pipeline: Passes as one.
        control: Budget, and callbacks.

    Raises:
        IntarsiaError: Measuring is impossible.
    """
    measured = [(contest.results().get(entrant.key), entrant.input) for entrant in contest.entrants]
    results = [(result, item) for result, item in measured if result is not None]
    # Passes before a placement of their own decide by the target that is the fastest so far.
    target = min(results, key=lambda pair: pair[0].cost)[1].target if results else REFERENCE_TARGET
    evaluator = MeasuringEvaluator(workload, target, contest.measurer, control=control, by_decisions=True)
    for result, item in results:
        evaluator.learn(item, result)
    ctx = TuningContext(evaluator, control=control, on_wait=contest.measurer.testbed.on_wait)
    contest.measurer.on_progress = control.report
    pipeline(workload.module, ctx)
    contest.enter_new(_entrants(contest, evaluator, ctx.node))
    noted = list(_notes(ctx.node))
    notes = [note for _, note in noted]
    searched = next((note for note in notes if isinstance(note, SearchedPartitions)), None)
    rows = next((note.rows for note in notes if isinstance(note, ScheduleRows)), ())
    lines = [f"{name}: {note}" for name, note in noted if isinstance(note, PassShare)]
    skipped = [f"left out: {skipped}" for skipped in control.skipped]
    shares = tuple(_share(name, note) for name, note in noted if isinstance(note, PassShare))
    return PipelineResult((_record(ctx.node),), (*lines, *skipped), searched, rows, shares)


def _share(target: str, share: PassShare) -> PassShareRecord:
    return PassShareRecord(target, share.name, share.slices, share.measured, share.seconds, share.gain)


def best_programs(tree: TuningNode, mod: IRModule) -> list[Trace]:
    """Return the fastest programs of a tuning tree, none much slower than the fastest one.

    The tree also holds candidates for parts of the program. They take a fraction of its time, and compute
    something else: they are left out. So are programs that are not placed yet: their costs are those on a
    target that only a later decision names.

    Args:
        tree: Tuning tree with the candidates.
        mod: The program that was tuned.
    """
    traces: dict[str, Trace] = {}
    of_program = [trace for trace in _evaluated(tree) if trace.in_mod is mod and _is_placed(trace)]
    for trace in sorted(of_program, key=lambda trace: len(decisions_of(trace))):
        traces.setdefault(structural_digest(trace.out_mod), trace)
    costs = {digest: trace.cost for digest, trace in traces.items()}
    most = _PROMISING * min(costs.values(), default=math.inf)
    ranked = sorted((cost, digest) for digest, cost in costs.items() if math.isfinite(cost) and cost <= most)
    return [traces[digest] for _, digest in ranked]


def _entrants(contest: Contest, evaluator: MeasuringEvaluator, tree: TuningNode) -> list[Entrant]:
    """Return the best programs that do not take part yet."""
    keys = {entrant.key for entrant in contest.entrants}
    chosen: list[Entrant] = []
    for trace in best_programs(tree, evaluator.workload.module):
        item = evaluator.input(trace)
        names = [*(entrant.name for entrant in contest.entrants), *(entrant.name for entrant in chosen)]
        entrant = Entrant(entrant_name(item, names), item)
        if entrant.key not in keys and len(chosen) < _FINALISTS:
            keys.add(entrant.key)
            chosen.append(entrant)
    return chosen


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


def entrant_name(item: MeasureInput, taken: Sequence[str]) -> str:
    """Return a free name: the toolchains, "tuned" after decisions, and a number if the name is taken.

    Args:
        item: Candidate with a placement, also one whose placement is followed by decisions on kernels.
        taken: Names of other candidates.
    """
    decisions, _ = decisions_and_base(item.candidate)
    placed = placement_alone(item)
    is_parted = placed.candidate.kind == KIND
    toolchains = Placement.of_candidate(placed.candidate).summary if is_parted else whole_name(placed.target)
    return free_name(f"{toolchains} tuned" if decisions else toolchains, taken, " ({})", 2)


def _evaluated(node: TuningNode) -> Iterator[Trace]:
    if node.trace is not None and node.trace.perf is not None:
        yield node.trace
    for child in node.children:
        yield from _evaluated(child)


def _is_placed(trace: Trace) -> bool:
    return any(True for _ in marked_functions(trace.out_mod))


def _notes(node: TuningNode) -> Iterator[tuple[str, object]]:
    """Yield the notes of a tree, each with the name of its node, such as a target."""
    yield from ((node.name, note) for note in node.notes)
    for child in node.children:
        yield from _notes(child)
