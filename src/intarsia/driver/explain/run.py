"""Explaining the result of a tuning run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from intarsia.collage.conflicts import declared_conflicts
from intarsia.collage.costs.boundary_costs import NO_BOUNDARIES, BoundaryCosts
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.placement.placement import KIND, Partition, Placement, stable_nodes
from intarsia.collage.sub_graph import SubGraph
from intarsia.driver.entrant import Entrant, after_decisions
from intarsia.driver.explain.comparison import Comparison
from intarsia.driver.explain.explained_function import FunctionRecord
from intarsia.driver.explain.explanation import Border, ContestRecord, Explanation, Losses
from intarsia.driver.explain.function import ChosenPartition, explain_function
from intarsia.driver.partition import SearchedPartitions
from intarsia.driver.records import CandidateRecord
from intarsia.driver.tuned_programs import TunedPrograms
from intarsia.frontend.onnx import import_notes
from intarsia.ir import Function, IRModule
from intarsia.measure.candidate_kind import AS_IT_IS, WHOLE
from intarsia.measure.measure_input import MeasureInput
from intarsia.passes.functions.sealed import is_sealed
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.target import Host
from intarsia.tune.tuned_candidate import decisions_and_base

PROFILE_SECONDS: Final = 0.5
"""For timing each kernel of the winner."""

_MOST_REPEATS: Final = 20


def explain_run(
    winner: Entrant,
    entrants: Sequence[Entrant],
    records: Sequence[CandidateRecord],
    host: Host,
    searched: SearchedPartitions | None,
    tuned: TunedPrograms | None,
    kernel_seconds: Mapping[str, float],
) -> Explanation:
    """Why the winner of a contest won, part by part.

    Args:
        winner: Who won.
        entrants: All who took part.
        records: What became of them, the winner first.
        host: This machine.
        searched: How partitions were searched, if they were.
        tuned: What tuning passes have found, if there were any.
        kernel_seconds: What each kernel of the winner takes, if that was taken.
    """
    module = winner.input.workload.module
    won, decisions = after_decisions(winner.input), decisions_and_base(winner.input.candidate)[0]
    boundaries = NO_BOUNDARIES if searched is None else searched.boundaries
    predicted = {} if searched is None else _predicted(entrants, searched, module)
    partitions = _partitions(won, kernel_seconds)
    return Explanation(
        model=winner.input.workload.name,
        host=host.digest,
        cpu=host.cpu_model,
        cores=host.cores,
        chosen=winner.name,
        functions=explain_functions(won.workload.module, partitions, None if decisions else searched),
        borders=borders(boundaries),
        run_seconds=boundaries.run_seconds,
        contest=tuple(_contest_record(each, predicted.get(each.name)) for each in records),
        losses=_losses(records, searched, predicted),
        decisions=tuple(text for text, _ in decisions),
        tuning=() if tuned is None else tuned.tree,
        notes=(*import_notes(module), *_notes(searched), *(() if tuned is None else tuned.shares)),
    )


def kernel_seconds(executable: Executable, inputs: Sequence[Array], latency: float) -> dict[str, float]:
    """What each kernel takes in the executable: medians of up to 20 runs.

    Args:
        executable: What is timed.
        inputs: Its inputs.
        latency: What a run takes, in seconds; so many runs are made as fit into half a second, one at least.
    """
    repeats = max(1, min(_MOST_REPEATS, int(PROFILE_SECONDS / max(latency, 1e-6))))
    profile = executable.profile(*inputs, repeats=repeats, warmup=min(3, repeats))
    found: dict[str, float] = {}
    for kernel in profile.kernels:
        found[kernel.name] = found.get(kernel.name, 0.0) + kernel.microseconds * 1e-6
    return found


def explain_functions(
    module: IRModule, chosen: Sequence[ChosenPartition], searched: SearchedPartitions | None
) -> tuple[FunctionRecord, ...]:
    """The functions of a module that can be partitioned, @main first."""
    covers = {} if searched is None else {each.name: each for each in searched.found.functions}
    boundaries = NO_BOUNDARIES if searched is None else searched.boundaries
    records = []
    for var, function in module.graph_functions.items():
        if is_sealed(function):
            continue
        cover = covers.get(var.name)
        own = [each for each in chosen if each.partition.function == var.name]
        comparison, graph = None, None
        if cover is not None and cover.candidates:
            graph = cover.candidates[0].sub_graph.graph
            parts = [each.partition for each in own]
            comparison = Comparison(graph, cover, parts, boundaries, declared_conflicts())
        records.append(explain_function(var.name, graph or DataflowGraph.of(function), own, comparison))
    return tuple(sorted(records, key=lambda each: each.name != "main"))


def whole_partition(name: str, function: Function, target: str) -> Partition:
    """All of a function, for one target."""
    graph = DataflowGraph.of(function)
    computed = graph.computed
    nodes = tuple(number for number, index in enumerate(stable_nodes(graph)) if index in computed)
    return Partition(name, target, nodes, SubGraph.of(graph, computed).label)


def borders(boundaries: BoundaryCosts) -> tuple[Border, ...]:
    """The costs of borders as records."""
    return tuple(
        Border(writer, reader, each.fixed, each.per_byte)
        for (writer, reader), each in sorted(boundaries.crossings.items())
    )


def _notes(searched: SearchedPartitions | None) -> tuple[str, ...]:
    """What limits the search."""
    if searched is None:
        return ("no partitions were searched: only whole models were compared",)
    unmeasured = sum(each.best.unmeasured for each in searched.found.functions)
    if unmeasured:
        return (
            f"there was no time to measure {unmeasured} of the parts that were predicted to be the cheapest: "
            "--budget gives more",
        )
    return ()


def _partitions(winner: MeasureInput, seconds: Mapping[str, float]) -> list[ChosenPartition]:
    """The partitions of the winner; of one toolchain for the whole model, its functions."""
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
        if not is_sealed(function)
    ]


def _predicted(
    entrants: Sequence[Entrant], searched: SearchedPartitions, module: IRModule
) -> dict[str, float]:
    """What the search predicted for entrants, end to end, by name; its own answer first."""
    found: dict[str, float] = {}
    for record in searched.found.placements:
        seconds = record.seconds + searched.boundaries.run_seconds
        digest, main = record.placement.candidate.digest, _whole_target(record.placement, module)
        for each in entrants:
            item = each.input
            if item.candidate.digest == digest or (
                item.candidate.kind == WHOLE.kind and str(item.target) == main
            ):
                found.setdefault(each.name, seconds)
    return found


def _whole_target(placement: Placement, module: IRModule) -> str:
    """The target that runs all of @main in a placement, or ""."""
    mine = [each for each in placement.partitions if each.function == "main"]
    main = module["main"]
    if len(mine) != 1 or not isinstance(main, Function):
        return ""
    whole = whole_partition("main", main, mine[0].target)
    return mine[0].target if set(mine[0].nodes) == set(whole.nodes) else ""


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
    )


def _losses(
    records: Sequence[CandidateRecord], searched: SearchedPartitions | None, predicted: Mapping[str, float]
) -> Losses | None:
    """The seed's losses of what the search found best; None if that was not measured."""
    main = (
        None
        if searched is None
        else next((each for each in searched.found.functions if each.name == "main"), None)
    )
    seconds = {each.name: each.timing.median for each in records if each.timing is not None}
    best = next(iter(predicted), "")
    if searched is None or main is None or best not in seconds:
        return None
    answer = main.best.seconds + searched.boundaries.run_seconds
    if not math.isclose(predicted[best], answer):
        return None
    alone = {each.name: seconds[each.name] for each in records if each.is_whole and each.name in seconds}
    own = min(alone, key=lambda name: alone[name], default="")
    measured, lower = seconds[best], main.lower_bound + searched.boundaries.run_seconds
    return Losses(
        subject=best,
        predicted=answer,
        measured=measured,
        additive_error=measured - answer,
        optimality_loss_low=measured - min(seconds.values()),
        optimality_loss_high=max(measured - min(seconds.values()), measured - lower),
        own=own,
        apparent_loss=measured - alone[own] if own else None,
    )
