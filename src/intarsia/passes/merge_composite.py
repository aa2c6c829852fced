"""Groups of operators that a toolchain runs as one become functions."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Attrs, Call, Expr, Function, IRModule, Op
from intarsia.ir.pattern import Match, Users, match
from intarsia.op.pattern_table import CompositePattern, composite_name, pattern_table
from intarsia.passes.functions.sealed import is_sealed
from intarsia.passes.regions.dataflow import Dataflow
from intarsia.passes.regions.outlining import Region, outlined
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class MergeComposite(FunctionPass, opt_level=0, required=("InferType",)):
    """Wraps what matches a toolchain's pattern table into functions, called in place (seed collage_rfc).

    The function has the attributes `Composite`, "<toolchain>.<name of the pattern>", and
    `PartitionedFromPattern`, the operators in it. `AnnotateTarget` gives it to the toolchain as a whole.

    * The first pattern of the table wins, over the whole function; of one pattern, the match nearest to the
      result. Matches do not overlap.
    * What a match covers may be used by nothing outside, but for its last expression; then nothing outside
      lies between its parts. It lies in one scope and on one virtual device.
    * The check of the pattern's row decides last.

    Linear in the program, times the number of patterns and what they cost (`ir.pattern.matching`).

    With `CompositePattern("neg_relu", is_op("Relu")(is_op("Neg")(wildcard())))` in the table of acme:

    Before:
        def @main(%x: Tensor[(2,), float32]) { Exp(Relu(Neg(%x))) }
    After:
        def @main(%x: Tensor[(2,), float32]) {
          %0 = fn (%p0: Tensor[(2,), float32])
              attributes {Composite="acme.neg_relu", PartitionedFromPattern="Neg_Relu"} {
            Relu(Neg(%p0))
          };
          Exp(%0(%x))
        }

    Attributes:
        toolchain: Toolchain whose table is used: see `op.pattern_table`. One without a table changes nothing.
    """

    toolchain: str

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with its matches called in place.

        Raises:
            UsageError: There is no such toolchain.
        """
        table = pattern_table(self.toolchain)
        if is_sealed(function) or not table:
            return function
        dataflow, users = Dataflow.of(function), Users.below(function)
        taken: set[Expr] = set()
        regions: list[Region] = []
        for row in table:
            for expr in reversed(dataflow.nodes):
                matched = match(row.pattern, expr, users) if expr not in taken else None
                if matched is not None and _is_legal(matched, dataflow, users, taken) and row.check(matched):
                    taken.update(matched.covered)
                    regions.append(_region(matched, self.toolchain, row))
        return outlined(function, regions, dataflow) if regions else function


def _is_legal(matched: Match, dataflow: Dataflow, users: Users, taken: set[Expr]) -> bool:
    """Whether what a match covers can become a function."""
    root = matched.root
    return (
        bool(matched.covered)
        and isinstance(root, Call)
        and taken.isdisjoint(matched.covered)
        and all(dataflow.scope.get(expr) is dataflow.scope[root] for expr in matched.covered)
        and all(expr.virtual_device == root.virtual_device for expr in matched.covered)
        and matched.is_exclusive(users)
    )


def _region(matched: Match, toolchain: str, row: CompositePattern) -> Region:
    names = [expr.op.name for expr in matched.covered if isinstance(expr, Call) and isinstance(expr.op, Op)]
    attrs = {"Composite": composite_name(toolchain, row.name), "PartitionedFromPattern": "_".join(names)}
    return Region(matched.covered, (matched.root,), Attrs(attrs))
