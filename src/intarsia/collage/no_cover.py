"""Why a function cannot be covered, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.cover_of_graph import GraphCover
from intarsia.collage.gather_specs import HOST
from intarsia.collage.graph.node_kind import node_label
from intarsia.collage.search import Infeasible
from intarsia.support.errors import UnsupportedModelError

_SHOWN = 3
"""Expressions that are named."""

_NO_TIME = "there was no time to measure it"


def no_cover(
    name: str,
    specs: Sequence[PartitionSpec],
    cover: GraphCover,
    estimates: Mapping[CandidatePartition, Estimate],
    result: Infeasible,
) -> UnsupportedModelError:
    """Return the error that names the uncovered expressions, with the refusal of each toolchain.

    Args:
        name: Name of the function.
        specs: Specs that were tried.
        cover: The problem.
        estimates: Estimates of the candidates.
        result: Result of the search.
    """
    nodes = sorted(result.uncovered + result.only_invalid or result.cut_off)
    if not nodes:
        where = "" if result.stuck_at is None else f" at {_label(cover, result.stuck_at)}"
        doubt = "" if result.is_proven else ", as far as was searched"
        return UnsupportedModelError(
            f"the candidates for function {name!r} do not fit together{where}{doubt}",
            help="add a toolchain, or allow toolchains together that are in conflict",
        )
    lines = [f"{_label(cover, node)} ({_refusals(cover, node, specs, estimates)})" for node in nodes[:_SHOWN]]
    if len(nodes) > _SHOWN:
        lines.append(f"and {len(nodes) - _SHOWN} more")
    is_late = any(_NO_TIME in line for line in lines)
    return UnsupportedModelError(
        f"no toolchain runs all of function {name!r}: {', '.join(lines)}",
        help="give the search more time" if is_late else "add a toolchain that can",
    )


def _label(cover: GraphCover, node: int) -> str:
    expr = cover.graph[cover.nodes[node]].expr
    return node_label(expr) or type(expr).__name__


def _refusals(
    cover: GraphCover,
    node: int,
    specs: Sequence[PartitionSpec],
    estimates: Mapping[CandidatePartition, Estimate],
) -> str:
    """What each spec has said of a node; the smallest candidate speaks for the others."""
    index, texts = cover.nodes[node], []
    for spec in specs:
        candidates = [
            candidate
            for candidate in cover.candidates
            if candidate.spec == spec and index in candidate.sub_graph.inside
        ]
        candidates.sort(key=lambda candidate: len(candidate.sub_graph.inside))
        tried = [estimates[candidate] for candidate in candidates if candidate in estimates]
        if tried:
            texts.append(f"{spec.name}: {tried[0].message or tried[0].error.value}")
        elif spec.name != HOST:
            texts.append(f"{spec.name}: {_NO_TIME if candidates else 'not supported'}")
    return "; ".join(texts)
