"""Reductions in two parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from intarsia.ir.attributes import NO_ATTRS
from intarsia.ir.prim_func import Arith, ArithOp, Intrinsic, Literal, Load, Scalar
from intarsia.native.dag.compute_dag import ComputeDAG
from intarsia.native.dag.respliced import free_op_name, respliced
from intarsia.native.dag.rewrite_scalar import with_values
from intarsia.native.te.functions import IF_THEN_ELSE
from intarsia.native.te.iter_var import IterKind, IterVar
from intarsia.native.te.tensor import ComputeOp, Tensor


@dataclass(frozen=True, slots=True)
class Factoring:
    """How a reduction is taken apart.

    Attributes:
        factor: The axis of partial results.
        place: Where it stands among the spatial axes of the partial results.
        reduce_axes: What each partial result is reduced over.
        values: The old reduction axes that are gone, over the new axes.
        conditions: What must hold for values to lie inside the old axes, where those cover too much.
    """

    factor: IterVar
    place: int
    reduce_axes: tuple[IterVar, ...]
    values: Mapping[str, Scalar]
    conditions: tuple[Scalar, ...]


def rfactor(dag: ComputeDAG, place: int, factoring: Factoring) -> ComputeDAG:
    """The DAG with a new operation of partial results, named with `.rf`, that the old one reduces.

    Args:
        dag: The DAG.
        place: Of a ComputeOp that reduces; the new operation is there afterwards.
        factoring: How.
    """
    op = dag.ops[place]
    assert isinstance(op, ComputeOp), "only reductions are factored"
    partial = _partial(op, factoring, free_op_name(dag, f"{op.name}.rf"))
    name = f"{factoring.factor.name}_v"
    while name in {axis.name for axis in op.axes}:
        name += "v"
    rest = IterVar(name, factoring.factor.extent, IterKind.REDUCTION)
    indices = [axis.var for axis in op.axes]
    indices.insert(factoring.place, rest.var)
    whole = replace(
        op,
        reduce_axes=(rest,),
        bodies=tuple(Load(buffer, tuple(indices)) for buffer in partial.buffers),
        inputs=tuple(Tensor(partial, i) for i in range(len(op.dtypes))),
        attrs=NO_ATTRS,
    )
    tensors = {Tensor(op, i): Tensor(whole, i) for i in range(len(op.dtypes))}
    return respliced(dag, place, (partial, whole), tensors, {})


def _partial(op: ComputeOp, factoring: Factoring, name: str) -> ComputeOp:
    combiner = op.combiner
    assert combiner is not None, "only reductions are factored"
    axes = [*op.axes]
    axes.insert(factoring.place, replace(factoring.factor, kind=IterKind.SPATIAL))
    bodies = (with_values(body, factoring.values) for body in op.bodies)
    return replace(
        op,
        name=name,
        axes=tuple(axes),
        combiner=combiner if factoring.reduce_axes else None,
        reduce_axes=factoring.reduce_axes,
        bodies=tuple(
            _guarded(body, neutral, factoring.conditions)
            for body, neutral in zip(bodies, combiner.identity, strict=True)
        ),
    )


def _guarded(body: Scalar, neutral: Literal, conditions: tuple[Scalar, ...]) -> Scalar:
    """The body where the conditions hold, else what does not count; only one of them is evaluated."""
    if not conditions:
        return body
    condition, *more = conditions
    for each in more:
        condition = Arith(ArithOp.AND, (condition, each))
    return Intrinsic(IF_THEN_ELSE, (condition, body, neutral), neutral.dtype)
