"""Explanation of the result of a tuning run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from intarsia.collage.conflicts import declared_conflicts
from intarsia.collage.costs.boundary_costs import NO_BOUNDARIES, BoundaryCosts
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.placement.placement import KIND, Partition, Placement, stable_nodes
from intarsia.collage.search_by_measured_sums import SearchedPartitions
from intarsia.collage.sub_graph import SubGraph
from intarsia.driver.explain.comparison import Comparison
from intarsia.driver.explain.function import ChosenPartition, explain_function, node_records
from intarsia.driver.explain.output_errors import finite
from intarsia.driver.explain.program_graph import program_graph, toolchains_by_name, toolchains_by_number
from intarsia.driver.explain.run_facts import NO_FACTS, RunFacts
from intarsia.driver.pipeline import PipelineResult
from intarsia.frontend.onnx import import_notes
from intarsia.ir import Function, IRModule
from intarsia.ir.variant import variant_sizes
from intarsia.measure.candidate_kind import AS_IT_IS, WHOLE, instantiate
from intarsia.measure.judge.gate_report import InputSetError
from intarsia.measure.measure_event import MeasureEvent
from intarsia.measure.measure_input import MeasureInput
from intarsia.passes.functions.sealed import is_sealed
from intarsia.report.explained_function import FunctionRecord
from intarsia.report.explanation import Border, ContestRecord, Explanation, Losses
from intarsia.report.run_records import InputSetDeviation, TrialRecord
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.target import Host
from intarsia.tune.contest.candidate_record import CandidateRecord
from intarsia.tune.contest.entrant import Entrant, after_decisions
from intarsia.tune.tuned_candidate import decisions_and_base

PROFILE_SECONDS: Final = 0.5
"""Seconds for timing the kernels of the winner."""

_MOST_REPEATS: Final = 20
"""Maximum number of profiled runs."""


def explain_run(
    winner: Entrant,
    entrants: Sequence[Entrant],
    records: Sequence[CandidateRecord],
    host: Host,
    pipeline: PipelineResult | None,
    kernel_seconds: Mapping[str, float],
    notes: Sequence[str] = (),
    facts: RunFacts = NO_FACTS,
) -> Explanation:
    """Explain why the winner of a contest won, region by region.

    Args:
        winner: Winner of the contest.
        entrants: All entrants.
        records: Records of the entrants, the winner first.
        host: This machine.
        pipeline: Results of the tuning pipeline, if it was run.
        kernel_seconds: Seconds of each kernel of the winner by name, if measured.
        notes: Remarks of the contest, in sentences.
        facts: Options of the run, and the use of its time.
    """
    module = winner.input.workload.module
    searched = None if pipeline is None else pipeline.searched
    won, decisions = after_decisions(winner.input), decisions_and_base(winner.input.candidate)[0]
    boundaries = NO_BOUNDARIES if searched is None else searched.boundaries
    predicted = {} if searched is None else _predicted(entrants, searched, module)
    partitions = _partitions(won, kernel_seconds)
    fitting = searched if searched is not None and _was_searched(searched, won.workload.module) else None
    return Explanation(
        model=winner.input.workload.name,
        host=host.digest,
        cpu=host.cpu_model,
        cores=host.cores,
        chosen=winner.name,
        functions=explain_functions(won.workload.module, partitions, fitting),
        borders=borders(boundaries),
        run_seconds=boundaries.run_seconds,
        contest=tuple(_contest_record(record, predicted.get(record.name)) for record in records),
        losses=_losses(records, searched, predicted),
        decisions=tuple(text for text, _ in decisions),
        tuning=() if pipeline is None else pipeline.tree,
        notes=(
            *import_notes(module),
            *notes,
            *_notes(searched),
            *(() if pipeline is None else pipeline.notes),
        ),
        workload=winner.input.workload.digest,
        graph=program_graph(module, _toolchains(winner.input, won, partitions)),
        request=facts.request,
        stages=facts.stages,
        trials=tuple(map(_trial, facts.events)),
        shares=() if pipeline is None else pipeline.shares,
        errors=facts.errors,
        remarks=facts.remarks,
        undecided=() if searched is None or fitting is not None else _undecided(searched, module),
    )


def _was_searched(searched: SearchedPartitions, module: IRModule) -> bool:
    """Whether the functions that were searched have the nodes of those of a module, with the same numbers."""
    functions = {var.name: function for var, function in module.graph_functions.items()}
    covers = [cover for cover in searched.result.functions if cover.candidates]
    return bool(covers) and all(
        cover.name in functions
        and node_records(cover.candidates[0].sub_graph.graph)
        == node_records(DataflowGraph.of(functions[cover.name]))
        for cover in covers
    )


def _undecided(searched: SearchedPartitions, module: IRModule) -> tuple[FunctionRecord, ...]:
    """Explain the cheapest mix of the program before decisions, if that is the program that was searched."""
    if not _was_searched(searched, module):
        return ()
    parts = [ChosenPartition(partition) for partition in searched.result.best.partitions]
    return explain_functions(module, parts, searched)


def _toolchains(
    winner: MeasureInput, won: MeasureInput, partitions: Sequence[ChosenPartition]
) -> dict[int, str]:
    """Return the toolchain of each node of @main by its number in the program that was tuned."""
    if won is winner:
        return toolchains_by_number(partitions)
    placed = instantiate(won.workload.module, won.target, won.candidate)
    return toolchains_by_name(winner.workload.module, placed)


def _trial(event: MeasureEvent) -> TrialRecord:
    cost = event.cost if math.isfinite(event.cost) else None
    return TrialRecord(event.at, event.seconds, event.workload, event.target, event.kind, cost, event.error)


def measure_kernel_seconds(
    executable: Executable, inputs: Sequence[Array], latency: float
) -> dict[str, float]:
    """Measure the seconds of each kernel within an executable: means of the fastest of up to 20 runs.

    Args:
        executable: Executable to profile.
        inputs: Input arrays.
        latency: Seconds per run; as many runs are made as fit into half a second, with
            and without timing, at least one of each.
    """
    repeats = max(1, min(_MOST_REPEATS, int(PROFILE_SECONDS / 2 / max(latency, 1e-6))))
    profile = executable.profile(*inputs, repeats=repeats, warmup=min(3, repeats), inside=False)
    by_name: dict[str, float] = {}
    for row in profile.rows:
        by_name[row.part] = by_name.get(row.part, 0.0) + row.seconds
    return by_name


def explain_functions(
    module: IRModule, chosen: Sequence[ChosenPartition], searched: SearchedPartitions | None
) -> tuple[FunctionRecord, ...]:
    """Explain the functions of a module that can be partitioned, @main first."""
    covers = {} if searched is None else {item.name: item for item in searched.result.functions}
    boundaries = NO_BOUNDARIES if searched is None else searched.boundaries
    records = []
    for var, function in module.graph_functions.items():
        if is_sealed(function) or variant_sizes(function):  # decisions have the variants
            continue
        cover = covers.get(var.name)
        partitions = [item for item in chosen if item.partition.function == var.name]
        comparison, graph = None, None
        if cover is not None and cover.candidates:
            graph = cover.candidates[0].sub_graph.graph
            parts = [item.partition for item in partitions]
            comparison = Comparison(graph, cover, parts, boundaries, declared_conflicts())
        records.append(
            explain_function(var.name, graph or DataflowGraph.of(function), partitions, comparison)
        )
    return tuple(sorted(records, key=lambda item: item.name != "main"))


def whole_partition(name: str, function: Function, target: str) -> Partition:
    """Return a partition of a whole function for one target."""
    graph = DataflowGraph.of(function)
    computed = graph.computed
    nodes = tuple(number for number, index in enumerate(stable_nodes(graph)) if index in computed)
    return Partition(name, target, nodes, SubGraph.of(graph, computed).label)


def borders(boundaries: BoundaryCosts) -> tuple[Border, ...]:
    """Return the boundary costs as records."""
    return tuple(
        Border(writer, reader, cost.fixed, cost.per_byte)
        for (writer, reader), cost in sorted(boundaries.crossings.items())
    )


def _notes(searched: SearchedPartitions | None) -> tuple[str, ...]:
    """Return notes about limits of the search."""
    if searched is None:
        return ("no partitions were searched: only whole models were compared",)
    unmeasured = sum(function.best.unmeasured for function in searched.result.functions)
    if unmeasured:
        return (
            f"there was no time to measure {unmeasured} of the parts that were predicted to be the cheapest: "
            "--budget gives more",
        )
    return ()


def _partitions(winner: MeasureInput, seconds: Mapping[str, float]) -> list[ChosenPartition]:
    """Return the partitions of the winner; for a whole-program candidate, its functions."""
    module, candidate = winner.workload.module, winner.candidate
    if candidate.kind == KIND:
        placement = Placement.of_candidate(candidate)
        pairs = zip(placement.partitions, placement.function_names(module), strict=True)
        return [ChosenPartition(partition, seconds.get(name)) for partition, name in pairs]
    if candidate.kind == AS_IT_IS.kind:
        return []
    total = sum(seconds.values()) if seconds else None
    target = str(winner.target)
    return [
        ChosenPartition(whole_partition(var.name, function, target), total if var.name == "main" else None)
        for var, function in module.graph_functions.items()
        if not is_sealed(function) and not variant_sizes(function)
    ]


def _predicted(
    entrants: Sequence[Entrant], searched: SearchedPartitions, module: IRModule
) -> dict[str, float]:
    """Return the end-to-end predictions of the search for entrants by name; its best one first."""
    by_name: dict[str, float] = {}
    for record in searched.result.placements:
        seconds = record.seconds + searched.boundaries.run_seconds
        digest, main = record.placement.candidate.digest, _whole_target(record.placement, module)
        for entrant in entrants:
            item = entrant.input
            if item.candidate.digest == digest or (
                item.candidate.kind == WHOLE.kind and str(item.target) == main
            ):
                by_name.setdefault(entrant.name, seconds)
    return by_name


def _whole_target(placement: Placement, module: IRModule) -> str:
    """Return the target that runs all of @main in a placement, or ""."""
    in_main = [partition for partition in placement.partitions if partition.function == "main"]
    main = module["main"]
    if len(in_main) != 1 or not isinstance(main, Function):
        return ""
    whole = whole_partition("main", main, in_main[0].target)
    return in_main[0].target if set(in_main[0].nodes) == set(whole.nodes) else ""


def _contest_record(record: CandidateRecord, predicted: float | None) -> ContestRecord:
    ratio = record.ratio
    is_open = ratio is None or not math.isfinite(ratio.high)
    return ContestRecord(
        name=record.name,
        status=record.status.value,
        reason=record.reason,
        seconds=None if record.timing is None else record.timing.median,
        ratio=None if ratio is None else ratio.ratio,
        ratio_low=None if is_open or ratio is None else ratio.low,
        ratio_high=None if is_open or ratio is None else ratio.high,
        predicted=predicted,
        is_whole=record.is_whole,
        is_chosen=record.chosen,
        target=record.target,
        measure_seconds=record.measure_seconds,
        max_error=None if record.max_error is None else finite(record.max_error),
        by_size=record.by_size,
        errors=tuple(map(_input_set_deviation, record.errors)),
    )


def _input_set_deviation(error: InputSetError) -> InputSetDeviation:
    return InputSetDeviation(
        error.inputs, error.verdict, error.output, finite(error.max_rel), finite(error.excess)
    )


def _losses(
    records: Sequence[CandidateRecord], searched: SearchedPartitions | None, predicted: Mapping[str, float]
) -> Losses | None:
    """Return the losses of the best predicted partitioning; None if it was not measured."""
    main = (
        None
        if searched is None
        else next((function for function in searched.result.functions if function.name == "main"), None)
    )
    seconds = {record.name: record.timing.median for record in records if record.timing is not None}
    best = next(iter(predicted), "")
    if searched is None or main is None or best not in seconds:
        return None
    answer = main.best.seconds + searched.boundaries.run_seconds
    # The first prediction may be of another placement, if the best one was not measured end to end.
    if not math.isclose(predicted[best], answer):
        return None
    alone = {
        record.name: seconds[record.name] for record in records if record.is_whole and record.name in seconds
    }
    best_alone = min(alone, key=lambda name: alone[name], default="")
    measured, lower = seconds[best], main.lower_bound + searched.boundaries.run_seconds
    return Losses(
        subject=best,
        predicted=answer,
        measured=measured,
        additive_error=measured - answer,
        optimality_loss_low=measured - min(seconds.values()),
        optimality_loss_high=max(measured - min(seconds.values()), measured - lower),
        own=best_alone,
        apparent_loss=measured - alone[best_alone] if best_alone else None,
    )
