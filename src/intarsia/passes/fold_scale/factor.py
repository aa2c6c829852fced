"""Multiplications that stay: another scale goes into their constant."""

from __future__ import annotations

from intarsia.ir import Call, Constant, Expr, with_fields
from intarsia.passes.fold_scale.scale import Acceptance, Scale, acceptance_of, scale_of, scaled_constant
from intarsia.passes.rules.tensor_facts import dims_of, operator_name


def of_factor(call: Call, position: int) -> Acceptance | None:
    """What the constant of a Mul takes whose argument `position` it multiplies."""
    constant, scale = call.args[1 - position], scale_of(call)
    if operator_name(call) != "Mul" or not isinstance(constant, Constant) or scale is None:
        return None
    return acceptance_of(scale[1].axis, constant)


def multiplied_again(call: Call, scale: Scale) -> Expr:
    """A multiplication by a constant, with a scale in the constant."""
    pulled, dims = scale_of(call), dims_of(call)
    assert pulled is not None
    assert dims is not None
    position, _ = pulled
    constant = call.args[1 - position]
    assert isinstance(constant, Constant)
    scaled = scaled_constant(constant, scale.broadcast(len(dims)))
    operands = (call.args[0], scaled) if position == 0 else (scaled, call.args[1])
    return with_fields(call, args=operands)
