"""Options of targets that passes decide on before a placement, such as native's schedule log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite

from intarsia.target import Target
from intarsia.transform import Pass
from intarsia.tune.candidates import evaluate
from intarsia.tune.contest.contest import HOPELESS
from intarsia.tune.extension import after_passes
from intarsia.tune.target_options import marked_functions
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_tree import TuningNode


def tune_targets(
    passes: Mapping[str, Sequence[Pass]], wholes: Mapping[Target, Trace], ctx: TuningContext
) -> dict[Target, Trace]:
    """Return the targets with the options that passes decide on, each with the whole program on it.

    Options are kept where they are faster by single measurements. A target on which the program is far slower
    than on the fastest one keeps its options: they make a part of that difference at most.

    Args:
        passes: Passes by name of a toolchain, which decide on options of its functions.
        wholes: The whole program on each target.
        ctx: Context of the passes.
    """
    evaluate(list(wholes.values()), ctx)
    fastest = min((whole.cost for whole in wholes.values()), default=inf)
    nodes = {id(node.trace): node for node in ctx.node.children}
    tuned: dict[Target, Trace] = {}
    for target, whole in wholes.items():
        row = passes.get(str(target.toolchain), ())
        best = _tune_target(row, target, whole, fastest, nodes[id(whole)], ctx) if row else whole
        marked = next((function.target for function in marked_functions(best.out_mod)), target)
        is_faster = best.cost < whole.cost
        tuned[marked if is_faster else target] = best if is_faster else whole
    return tuned


def _tune_target(
    row: Sequence[Pass], target: Target, whole: Trace, fastest: float, node: TuningNode, ctx: TuningContext
) -> Trace:
    """Return the whole program after the passes on its target; as it is where they cannot pay."""
    if not isfinite(whole.cost):
        return whole
    if whole.cost > HOPELESS * fastest:
        names = ", ".join(item.info.name for item in row)
        ratio = f"it takes {whole.cost / fastest:.1f} times as long as the fastest"
        ctx.control.skip(f"{names} for {target.toolchain}", ratio)
        return whole
    return after_passes(row, whole, ctx.recording(whole, node))
