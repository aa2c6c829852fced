"""Operators that can run as one kernel become one function."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Attrs, Call, Constant, Expr, Function, IRModule, Op, Var, children, with_children
from intarsia.ir.scope import is_atom
from intarsia.op.known_value import known_value, record_known_value
from intarsia.passes.functions.sealed import is_sealed
from intarsia.passes.fusion.fusion_graph import FusionGraph
from intarsia.passes.fusion.fusion_groups import FusionGroups
from intarsia.support.errors import UsageError
from intarsia.transform import (
    DiagnosticLevel,
    DiagnosticNote,
    FunctionPass,
    PassContext,
    register_config_option,
    register_pass,
)

MAX_DEPTH = register_config_option(
    "FuseOps.max_depth", int, 256, "the largest number of operators that FuseOps puts into one function"
)


@register_pass
@dataclass(frozen=True)
class FuseOps(FunctionPass, opt_level=1, required=("ToGraphNormalForm",)):
    """Groups operators by fusion kind along post-dominators, and calls each group in place as a function.

    The groups are those of graph fusion in TVM (OSDI 2018, section 3), by `op.op_pattern`: what follows a
    heavy operator element by element joins it; elementwise, broadcast and injective operators join each
    other; a reduction takes the elementwise and broadcast ones that feed it, and ends the group. Every path
    between the first and the last is in the group.
    Expressions of one scope are fused only: the body of a function, a Loop or a Let, a branch of an If.
    So it requires ToGraphNormalForm, which a sequence runs before it, for programs with lets.

    * A group is a function literal with the attribute `Primitive=1`; one operator alone stays as it is.
    * Values computed outside are its parameters. Constants stay inside, whatever their size, because
      toolchains prepare weights when they compile, and shapes, axes and pads have to be known then.
    * Not fused are operators with a computed shape argument, small values known at compile time, and draws
      of random numbers.
    * Expressions on different virtual devices are not fused. The function has the device of its result.
    * Functions that are Primitive, Composite or given to a toolchain are left alone.

    Linear in the program, times log n, and times `max_depth` where paths are long.

    Before:
        def @main(%x: Tensor[(2,), float32], %y: Tensor[(2,), float32]) {
          Relu(Add(%x, %y))
        }
    After:
        def @main(%x: Tensor[(2,), float32], %y: Tensor[(2,), float32]) {
          %0 = fn (%p0: Tensor[(2,), float32], %p1: Tensor[(2,), float32]) attributes {Primitive=1} {
            Relu(Add(%p0, %p1))
          };
          %0(%x, %y)
        }

    Attributes:
        max_depth: The largest number of operators in a function, 1 or more; None is the config option
            "FuseOps.max_depth".
    """

    max_depth: int | None = None

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with its groups called in place.

        Raises:
            UsageError: `max_depth` is below 1.
        """
        depth = ctx.option(MAX_DEPTH) if self.max_depth is None else self.max_depth
        if depth < 1:
            raise UsageError(f"FuseOps has max_depth={depth}, expected 1 or more")
        if is_sealed(function):
            return function
        graph = FusionGraph.of(function)
        grown = FusionGroups.grown(graph, depth)
        if ctx.is_diagnosing:
            _diagnose(grown, ctx)
        groups = [tuple(graph.nodes[index] for index in group) for group in grown.members()]
        return _with_groups(function, graph, [group for group in groups if _is_worthwhile(group)])


def _diagnose(groups: FusionGroups, ctx: PassContext) -> None:
    """Say which operators stay apart from those that use their results."""
    for missed in groups.missed():
        note = DiagnosticNote(missed.user, "uses its result")
        text = f"is not fused with what follows: {missed.reason}"
        ctx.diagnose(missed.call, DiagnosticLevel.MISSED, text, [note])


def _is_worthwhile(group: tuple[Expr, ...]) -> bool:
    """Whether a group holds two operators or more."""
    return sum(isinstance(expr, Call) and isinstance(expr.op, Op) for expr in group) > 1


def _with_groups(function: Function, graph: FusionGraph, groups: list[tuple[Expr, ...]]) -> Function:
    """The function where the last expression of each group has become a call of the group."""
    by_result = {group[-1]: group for group in groups}
    inside = {expr for group in groups for expr in group}
    done: dict[Expr, Expr] = {}
    for expr in graph.nodes:
        if expr in by_result:
            done[expr] = _call_of(by_result[expr], done)
        elif expr not in inside:
            new = with_children(expr, tuple(done.get(child, child) for child in children(expr)))
            if isinstance(new, Call) and known_value(expr) is not None:
                record_known_value(new)  # else a second run would fuse what the first did not
            done[expr] = new
    after = done.get(function, function)
    assert isinstance(after, Function)
    return after


def _call_of(group: tuple[Expr, ...], done: dict[Expr, Expr]) -> Call:
    """A call of a group in place.

    Args:
        group: Its expressions in order, the result last.
        done: Replacements of the expressions around it.
    """
    params: dict[Expr, Var] = {}
    inner: dict[Expr, Expr] = {}

    def stand_in(used: Expr) -> Expr:
        if used in inner:
            return inner[used]
        if isinstance(used, Constant) or (is_atom(used) and not isinstance(used, Var)):
            return used
        if used not in params:
            params[used] = Var(
                f"p{len(params)}",
                checked_type=used.checked_type,
                virtual_device=used.virtual_device,
                span=used.span,
            )
        return params[used]

    for expr in group:
        inner[expr] = with_children(expr, tuple(map(stand_in, children(expr))))
    result = group[-1]
    device, span = result.virtual_device, result.span
    marks = Attrs({"Primitive": 1})
    function = Function(tuple(params.values()), inner[result], marks, virtual_device=device, span=span)
    args = tuple(done.get(used, used) for used in params)
    return Call(function, args, checked_type=result.checked_type, virtual_device=device, span=span)
