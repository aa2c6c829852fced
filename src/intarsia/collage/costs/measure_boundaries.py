"""Measuring what borders between toolchains cost on a host: chains of small kernels, alternating."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Final

from intarsia.collage.costs.boundary_costs import BoundaryCosts, Crossing
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.placement.placement import Partition, Placement, stable_nodes
from intarsia.ir import Call, DType, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.candidate_kind import AS_IT_IS
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measurer import Measurer
from intarsia.op import call
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET

LENGTH: Final = 6
"""Kernels of a chain."""

ELEMENTS: Final = (1 << 10, 1 << 16, 1 << 20)
"""Sizes of the values, in elements of four bytes."""

"""What is left of a placed program is for the host to run; of a chain nothing is left."""


def measure_boundaries(
    measurer: Measurer, targets: Sequence[Target], seconds: float = math.inf
) -> BoundaryCosts:
    """Measure the border costs between some targets, or find them in the database.

    A chain of kernels that alternates between two toolchains takes what the kernels take by themselves, and
    what the borders add: the data is in another core's cache, threads of one pool wake up and those of the
    other fall asleep. Both directions of a pair count as equal. A pair whose chain fails is free.

    Args:
        measurer: Measures, and keeps what is measured.
        targets: Distinct toolchains.
        seconds: Time for measuring.

    Raises:
        IntarsiaError: Measuring is impossible.
    """
    names = {str(target.toolchain): target for target in targets}
    pairs = list(combinations_with_replacement(names, 2))
    items: dict[tuple[str, ...], MeasureInput] = {("run",): _nothing()}
    for size in ELEMENTS:
        one, chain = Workload(_chain(size, 1), "one kernel"), Workload(_chain(size, LENGTH), "border costs")
        for name, target in names.items():
            items[name, str(size)] = _placed(one, [target])
        for first, second in pairs:
            items[first, second, str(size)] = _placed(chain, [names[first], names[second]])
    results = measurer.measure(list(items.values()), seconds=seconds)
    costs = {key: result.cost for key, result in zip(items, results, strict=True) if result is not None}
    run_seconds = costs.get(("run",), 0.0)
    crossings: dict[tuple[str, str], Crossing] = {}
    for first, second in pairs:
        crossings[first, second] = crossings[second, first] = _crossing(costs, first, second, run_seconds)
    return BoundaryCosts(crossings, run_seconds=run_seconds)


def measure_run(measurer: Measurer) -> float:
    """Measure the seconds of every run of a program besides its kernels, or find them in the database.

    Args:
        measurer: Measures, and keeps what is measured.

    Raises:
        IntarsiaError: Measuring is impossible.
    """
    (result,) = measurer.measure([_nothing()])
    return result.cost if result is not None and result.is_ok else 0.0


def _crossing(
    seconds: Mapping[tuple[str, ...], float], first: str, second: str, run_seconds: float
) -> Crossing:
    extra: dict[int, float] = {}
    for size in ELEMENTS:
        chain = seconds.get((first, second, str(size)), float("inf"))
        kernels = [seconds.get((name, str(size)), float("inf")) - run_seconds for name in (first, second)]
        borders = (chain - run_seconds - LENGTH / 2 * sum(kernels)) / (LENGTH - 1)
        if borders == borders and abs(borders) != float("inf"):
            extra[4 * size] = max(0.0, borders)
    if not extra:
        return Crossing()
    least, most = min(extra), max(extra)
    per_byte = max(0.0, extra[most] - extra[least]) / max(1, most - least)
    fixed = statistics.median(max(0.0, value - per_byte * size) for size, value in extra.items())
    return Crossing(fixed, per_byte)


def _chain(elements: int, length: int) -> IRModule:
    x = Var("x", checked_type=TensorType((elements,), DType.FLOAT32))
    value: Expr = x
    for _ in range(length):
        value = call("Relu", value)
    return IRModule.from_expr(Function((x,), value))


def _nothing() -> MeasureInput:
    """A program without kernels: what is left is the executable's call."""
    x = Var("x", checked_type=TensorType((ELEMENTS[0],), DType.FLOAT32))
    return MeasureInput(
        Workload(IRModule.from_expr(Function((x,), x)), "no kernel"), REFERENCE_TARGET, AS_IT_IS
    )


def _placed(workload: Workload, targets: Sequence[Target]) -> MeasureInput:
    """The chain with its kernels given to the targets in turn."""
    graph = DataflowGraph.of(workload.module["main"])
    numbers = [
        number for number, index in enumerate(stable_nodes(graph)) if isinstance(graph[index].expr, Call)
    ]
    partitions = tuple(
        Partition("main", str(targets[place % len(targets)]), (number,), "Relu")
        for place, number in enumerate(numbers)
    )
    return MeasureInput(workload, REFERENCE_TARGET, Placement(partitions).candidate)
