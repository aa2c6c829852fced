"""Writing through a copy."""

from __future__ import annotations

from dataclasses import replace

from intarsia.ir.attributes import NO_ATTRS, Attrs
from intarsia.ir.prim_func import Load
from intarsia.native.dag.compute_dag import ComputeDAG
from intarsia.native.dag.op_attrs import AXIS_NAMES
from intarsia.native.dag.respliced import free_op_name, respliced
from intarsia.native.dag.rewrite_scalar import with_values
from intarsia.native.te.tensor import ComputeOp, Tensor


def cache_write(dag: ComputeDAG, place: int, scope_name: str) -> ComputeDAG:
    """The DAG with an operation's computation in a new one before it, which it copies.

    The new operation has the spatial axes `i.c` for `i`, and the attributes; the old one keeps its name.

    Args:
        dag: The DAG.
        place: Of a ComputeOp; the new operation is there afterwards.
        scope_name: The new operation is named like the old one, `.`, and this.
    """
    op = dag.ops[place]
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
    return respliced(dag, place, (cache, copy), tensors, {})


def _cache(op: ComputeOp, name: str) -> ComputeOp:
    taken = {axis.name for axis in op.reduce_axes}
    names: dict[str, str] = {}
    for axis in op.axes:
        new = f"{axis.name}.c"
        while new.replace(".", "_") in {each.replace(".", "_") for each in (*taken, *names.values())}:
            new += "c"
        names[axis.name] = new
    axes = tuple(replace(axis, name=names[axis.name]) for axis in op.axes)
    values = {old.name: new.var for old, new in zip(op.axes, axes, strict=True)}
    return replace(
        op,
        name=name,
        axes=axes,
        bodies=tuple(with_values(body, values) for body in op.bodies),
        attrs=_renamed(op.attrs, names),
    )


def _renamed(attrs: Attrs, names: dict[str, str]) -> Attrs:
    """Lists of axes name the axes as they are now."""
    changes = {}
    for key in AXIS_NAMES:
        listed = attrs.get(key)
        if isinstance(listed, tuple):
            changes[key] = tuple(names.get(name, name) if isinstance(name, str) else name for name in listed)
    return attrs.updated(**changes)
