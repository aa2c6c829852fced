"""Operators that no partition of a placement covers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.node_kind import node_label
from intarsia.collage.rules.must_be_lowered import open_calls
from intarsia.ir import Expr, IRModule
from intarsia.measure.candidate_kind import instantiate
from intarsia.measure.measure_input import Candidate
from intarsia.passes.functions.sealed import is_sealed
from intarsia.target.reference import REFERENCE_TARGET

_NAMED: Final = 5
"""Largest number of operators that a note lists."""


def uncovered_calls(mod: IRModule, candidate: Candidate) -> tuple[Expr, ...]:
    """Return the calls of a program that a candidate gives to no toolchain, in order.

    Args:
        mod: The program, with types.
        candidate: A candidate for all of it.

    Raises:
        UsageError: It does not fit the program.
    """
    placed = instantiate(mod, REFERENCE_TARGET, candidate)
    graphs = [DataflowGraph.of(each) for each in placed.graph_functions.values() if not is_sealed(each)]
    return tuple(graph[index].expr for graph in graphs for index in open_calls(graph))


def calls_text(calls: Sequence[Expr]) -> str:
    """Return the number of calls and the names of the first ones: `2 operators (Relu "act", Exp)`."""
    names = [f'{node_label(call)} "{call.span.node}"' if call.span else node_label(call) for call in calls]
    more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
    count = f"{len(names)} operator{'' if len(names) == 1 else 's'}"
    return f"{count} ({', '.join([*names[:_NAMED], *more])})"
