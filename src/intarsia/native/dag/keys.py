"""Keys of computations, the same in every process and on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Arith, Cast, Intrinsic, Literal, Load, LoopVar, Scalar
from intarsia.native.dag.compute_dag import ComputeDAG
from intarsia.native.dag.print_dag import dag_text
from intarsia.native.te.combiner import Combiner
from intarsia.native.te.op_attrs import APPEND_INPUTS, ATTENTION_INPUTS, AXIS_NAMES, LAYOUT_FREE
from intarsia.native.te.tensor import ComputeOp, ExternOp, Operation
from intarsia.support.digest import digest_text


def workload_key(dag: ComputeDAG, digest: Callable[[str], str] | None = None) -> str:
    """Return TVM's workload key: a JSON list of a digest of the text and the shapes of the DAG's tensors.

    Names are part of it, but for those that axes have by the arguments of a function: they are letters in it.
    `structural_key` ignores all names.

    Args:
        dag: The DAG.
        digest: Digest function for the text without shapes; MD5 if not given.
    """
    text = dag_text(dag.ops, shorten=False, simple=True, key_names=True)
    text_digest = (
        hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() if digest is None else digest(text)
    )
    return json.dumps([text_digest, *(list(tensor.shape) for tensor in dag.tensors)])


def structural_key(dag: ComputeDAG) -> str:
    """Return a digest of the computation: operations, types, extents and attributes, without names.

    Operations and axes are identified by position, so the order of the operations is part of it.
    """
    names = {op.name: f"t{place}" for place, op in enumerate(dag.ops)}
    parts = [part for op in dag.ops for part in _op_parts(op, dag, names)]
    places = [f"{dag.op_ids[tensor.op]}.{tensor.position}" for tensor in dag.tensors]
    return digest_text([*parts, "tensors", *places])


def _op_parts(op: Operation, dag: ComputeDAG, names: dict[str, str]) -> list[str]:
    parts = [type(op).__name__]
    parts += [f"{list(buffer.shape)} {buffer.dtype.value}" for buffer in op.buffers]
    parts += [f"{dag.op_ids[tensor.op]}.{tensor.position}" for tensor in op.inputs]
    if not isinstance(op, ComputeOp):
        body = [repr(op.body), op.name] if isinstance(op, ExternOp) else []
        return [*parts, *body, *_attr_parts(op, {}, names)]
    axes = {axis.name: f"a{place}" for place, axis in enumerate((*op.axes, *op.reduce_axes))}
    buffers = {
        buffer.name: f"{dag.op_ids[tensor.op]}.{tensor.position}"
        for tensor in op.inputs
        for buffer in (tensor.buffer,)
    }
    parts += [f"reduce {axis.extent}" for axis in op.reduce_axes]
    parts += [part for body in op.bodies for part in ("body", *_scalar_parts(body, axes, buffers))]
    return [*parts, *_combiner_parts(op.combiner), *_attr_parts(op, axes, names)]


def _combiner_parts(combiner: Combiner | None) -> list[str]:
    if combiner is None:
        return []
    sides = {load.buffer.name: load.buffer.name for load in (*combiner.lhs, *combiner.rhs)}
    results = [part for scalar in combiner.result for part in ("result", *_scalar_parts(scalar, {}, sides))]
    return ["combiner", *(" ".join(scalar.key) for scalar in combiner.identity), *results]


def _attr_parts(op: Operation, axes: dict[str, str], names: dict[str, str]) -> list[str]:
    parts = []
    for key, value in op.attrs.items():
        names_tensors = key in (LAYOUT_FREE, ATTENTION_INPUTS, APPEND_INPUTS)
        new_names = axes if key in AXIS_NAMES else names if names_tensors else {}
        listed = value if isinstance(value, tuple) else (value,)
        parts += [
            "attr",
            key,
            *(new_names.get(item, item) if isinstance(item, str) else repr(item) for item in listed),
        ]
    return parts


def _scalar_parts(root: Scalar, axes: dict[str, str], buffers: dict[str, str]) -> list[str]:
    """Return the parts in post-order; with the number of operands in each, different trees differ."""
    return [_scalar_part(scalar, axes, buffers) for scalar, _ in scalar_post_order(root)]


def _scalar_part(scalar: Scalar, axes: dict[str, str], buffers: dict[str, str]) -> str:
    match scalar:
        case LoopVar():
            return f"axis {axes.get(scalar.name, scalar.name)}"
        case Literal():
            return " ".join(("literal", *scalar.key))
        case Load():
            return f"load {buffers[scalar.buffer.name]} {len(scalar.indices)}"
        case Arith():
            return f"arith {scalar.op.value} {len(scalar.operands)}"
        case Cast():
            return f"cast {scalar.dtype.value}"
        case Intrinsic():
            return f"call {scalar.name} {scalar.dtype.value} {len(scalar.args)}"
