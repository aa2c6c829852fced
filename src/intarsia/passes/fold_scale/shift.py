"""Additions of constants per channel after a layer, into its bias."""

from __future__ import annotations

import numpy as np

from intarsia.ir import Call, Constant, Expr, with_fields
from intarsia.passes.fold_scale.layer import WITH_BIAS, Layer, layer_of
from intarsia.passes.fold_scale.scale import FLOATS, scale_along_axis
from intarsia.passes.rules.tensor_facts import Array, dtype_of, operator_name
from intarsia.target import UNCONSTRAINED


def shifted_operand(expr: Expr) -> int | None:
    """Which argument an Add or Sub of a constant shifts, if that is a layer; None for all else."""
    if operator_name(expr) not in ("Add", "Sub") or dtype_of(expr) not in FLOATS:
        return None
    assert isinstance(expr, Call)
    match operator_name(expr), expr.args:
        case _, (layer, Constant()) if operator_name(layer) in WITH_BIAS:
            return 0
        case "Add", (Constant(), layer) if operator_name(layer) in WITH_BIAS:
            return 1
        case _:
            return None


def with_shift(call: Expr) -> Expr | None:
    """The layer that an Add or Sub shifts, with the shift in its bias; None if it does not fit in there."""
    position = shifted_operand(call)
    if position is None or not isinstance(call, Call):
        return None
    layer = layer_of(call.args[position])
    if layer is None or not _is_on_one_device(call, layer.call):
        return None
    constant = call.args[1 - position]
    assert isinstance(constant, Constant)
    shift = scale_along_axis(layer.call, constant)
    if shift is None or shift.axis not in (None, 1):
        return None
    values = -shift.factors if operator_name(call) == "Sub" else shift.factors
    bias = _bias(layer, values)
    if bias is None or not np.isfinite(bias.data.astype(np.float64)).all():
        return None
    return with_fields(layer.call, args=(*layer.call.args[:2], bias))


def _is_on_one_device(call: Call, layer: Call) -> bool:
    return UNCONSTRAINED in (call.virtual_device, layer.virtual_device) or (
        call.virtual_device == layer.virtual_device
    )


def _bias(layer: Layer, shift: Array) -> Constant | None:
    if layer.call.attrs.get("beta", 1.0) != 1.0 or (layer.bias is not None and layer.bias.data.ndim > 1):
        return None
    old: Array = np.zeros(1) if layer.bias is None else layer.bias.data.astype(np.float64)
    total = np.broadcast_to(old + shift, (_channels(layer),))
    return Constant(np.ascontiguousarray(total.astype(layer.weight.data.dtype)))


def _channels(layer: Layer) -> int:
    shape: tuple[int, ...] = layer.weight.data.shape
    match operator_name(layer.call):
        case "Conv":
            return shape[0]
        case "ConvTranspose":
            group = layer.call.attrs.get("group", 1)
            assert isinstance(group, int)
            return shape[1] * group
        case _:
            return shape[0] if layer.call.attrs.get("transB", 0) else shape[1]
