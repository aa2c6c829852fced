"""Flatten, Squeeze and Unsqueeze as Reshape, and CastLike as Cast."""

from __future__ import annotations

from intarsia.ir import Call, Expr, Op, with_fields
from intarsia.op.onnx_types import elem_type_of
from intarsia.passes.rules.reshape_target import reshaped
from intarsia.passes.rules.tensor_facts import dtype_of


def as_reshape(call: Call) -> Expr | None:
    """A change of shape as a Reshape, where the shape in the end can be written down."""
    return reshaped(call.args[0], call.checked_type)


def as_cast(call: Call) -> Expr | None:
    """A CastLike to a type that is known, as a Cast."""
    dtype = dtype_of(call.args[1])
    if dtype is None:
        return None
    attrs = call.attrs.updated(to=elem_type_of(dtype))
    return with_fields(call, op=Op("Cast"), args=call.args[:1], attrs=attrs)
