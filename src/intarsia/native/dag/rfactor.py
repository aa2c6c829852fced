"""DAG transform rfactor: a reduction of partial results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from intarsia.ir.attributes import NO_ATTRS
from intarsia.ir.prim_func import Arith, ArithOp, Intrinsic, Literal, Load, Scalar
from intarsia.native.dag.compute_dag import ComputeDAG
from intarsia.native.dag.respliced import free_op_name, respliced
from intarsia.native.te.functions import IF_THEN_ELSE
from intarsia.native.te.iter_var import IterKind, IterVar
from intarsia.native.te.rewrite_scalar import with_values
from intarsia.native.te.tensor import ComputeOp, Tensor


@dataclass(frozen=True, slots=True)
class Factoring:
    """The parts of a factored reduction.

    Attributes:
        factor: Axis of the partial results.
        position: Index of that axis among the spatial axes of the partial results.
        reduce_axes: Axes over which each partial result is reduced.
        values: Values of the replaced reduction axes, over the new axes, by name.
        conditions: Conditions under which the values lie inside the replaced axes, where the new axes cover
            more.
    """

    factor: IterVar
    position: int
    reduce_axes: tuple[IterVar, ...]
    values: Mapping[str, Scalar]
    conditions: tuple[Scalar, ...]


def rfactor(dag: ComputeDAG, op_id: int, factoring: Factoring) -> ComputeDAG:
    """Return the DAG with a new operation of partial results, named with `.rf`, which the old one reduces.

    Args:
        dag: The DAG.
        op_id: Number of a ComputeOp that reduces, in `dag.ops`; the new operation takes the number.
        factoring: Axes, values and conditions of the partial results.
    """
    op = dag.ops[op_id]
    assert isinstance(op, ComputeOp), "only reductions are factored"
    partial = _partial(op, factoring, free_op_name(dag, f"{op.name}.rf"))
    name = f"{factoring.factor.name}_v"
    while name in {axis.name for axis in op.axes}:
        name += "v"
    rest = IterVar(name, factoring.factor.extent, IterKind.REDUCTION)
    indices = [axis.var for axis in op.axes]
    indices.insert(factoring.position, rest.var)
    whole = replace(
        op,
        reduce_axes=(rest,),
        bodies=tuple(Load(buffer, tuple(indices)) for buffer in partial.buffers),
        inputs=tuple(Tensor(partial, i) for i in range(len(op.dtypes))),
        attrs=NO_ATTRS,
    )
    tensors = {Tensor(op, i): Tensor(whole, i) for i in range(len(op.dtypes))}
    return respliced(dag, op_id, (partial, whole), tensors, {})


def _partial(op: ComputeOp, factoring: Factoring, name: str) -> ComputeOp:
    combiner = op.combiner
    assert combiner is not None, "only reductions are factored"
    axes = [*op.axes]
    axes.insert(factoring.position, replace(factoring.factor, kind=IterKind.SPATIAL))
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
    """Return the body where the conditions hold, else the neutral element; only one of them is evaluated."""
    if not conditions:
        return body
    condition, *more = conditions
    for further in more:
        condition = Arith(ArithOp.AND, (condition, further))
    return Intrinsic(IF_THEN_ELSE, (condition, body, neutral), neutral.dtype)
