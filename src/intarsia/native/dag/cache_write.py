"""DAG transform cache_write: an operation is computed in a cache and copied."""

from __future__ import annotations

from dataclasses import replace

from intarsia.ir.attributes import NO_ATTRS, Attrs
from intarsia.ir.prim_func import Load
from intarsia.native.dag.compute_dag import ComputeDAG
from intarsia.native.dag.respliced import free_op_name, respliced
from intarsia.native.te.op_attrs import AXIS_NAMES
from intarsia.native.te.rewrite_scalar import with_values
from intarsia.native.te.tensor import ComputeOp, Tensor


def cache_write(dag: ComputeDAG, op_id: int, scope_name: str) -> ComputeDAG:
    """Return the DAG with an operation computed in a new one before it, which it copies.

    The new operation has the attributes, and the spatial axis `i.c` for each `i`; the old one keeps its name.

    Args:
        dag: The DAG.
        op_id: Number of a ComputeOp in `dag.ops`; the new operation takes the number.
        scope_name: Suffix of the new operation's name, after the old one's name and `.`.
    """
    op = dag.ops[op_id]
    assert isinstance(op, ComputeOp), "only computations by elements are written through copies"
    cache = _cache(op, free_op_name(dag, f"{op.name}.{scope_name}"))
    indices = tuple(axis.var for axis in op.axes)
    copy = replace(
        op,
        reduce_axes=(),
        bodies=tuple(Load(buffer, indices) for buffer in cache.buffers),
        combiner=None,
        inputs=tuple(Tensor(cache, i) for i in range(len(cache.dtypes))),
        attrs=NO_ATTRS,
    )
    tensors = {Tensor(op, i): Tensor(copy, i) for i in range(len(op.dtypes))}
    return respliced(dag, op_id, (cache, copy), tensors, {})


def _cache(op: ComputeOp, name: str) -> ComputeOp:
    taken = {axis.name for axis in op.reduce_axes}
    names: dict[str, str] = {}
    for axis in op.axes:
        new = f"{axis.name}.c"
        while new.replace(".", "_") in {
            taken_name.replace(".", "_") for taken_name in (*taken, *names.values())
        }:
            new += "c"
        names[axis.name] = new
    axes = tuple(axis.renamed(names[axis.name]) for axis in op.axes)
    values = {old.name: new.var for old, new in zip(op.axes, axes, strict=True)}
    return replace(
        op,
        name=name,
        axes=axes,
        bodies=tuple(with_values(body, values) for body in op.bodies),
        attrs=_renamed(op.attrs, names),
    )


def _renamed(attrs: Attrs, names: dict[str, str]) -> Attrs:
    """Return the attributes with the new names in lists of axes."""
    changes = {}
    for key in AXIS_NAMES:
        listed = attrs.get(key)
        if isinstance(listed, tuple):
            changes[key] = tuple(names.get(name, name) if isinstance(name, str) else name for name in listed)
    return attrs.updated(**changes)
