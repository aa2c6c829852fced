"""Operators of training, as what they are in inference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    with_fields,
)
from intarsia.op import call, rewrite_typed
from intarsia.op.node import OUTPUTS
from intarsia.op.onnx_types import elem_type_of
from intarsia.op.purity import is_random
from intarsia.passes.rules.tuple_field import tuple_field
from intarsia.transform import FunctionPass, PassContext, register_pass

_EPSILON = 1e-5
"""ONNX's default of BatchNormalization."""


@register_pass
@dataclass(frozen=True)
class SimplifyInference(FunctionPass, opt_level=0, required=("InferType",)):
    """Replaces batch normalization by a product and a sum, and drops Dropout and Identity.

    * BatchNormalization in inference mode: `x * factor + shift` with `factor = scale / sqrt(var + epsilon)`
      and `shift = bias - mean * factor`. These are computed for each channel in float32 or wider, by
      operators of the program (FoldConstant evaluates them), and rounded once to the element type of x. Of an
      x of unknown rank it stays, because the channels' shape is not known.
    * Dropout whose training mode is absent or false: its input, and a mask that is all true.
    * Identity: its input.

    Training mode stays, as do the normalizations that depend on the input: toolchains have kernels for those.

    Before:
        def @main(%x: Tensor[(1, 2, 4, 4), float32], %scale: Tensor[(2,), float32],
                  %bias: Tensor[(2,), float32], %mean: Tensor[(2,), float32], %var: Tensor[(2,), float32]) {
          BatchNormalization(Identity(Dropout(%x)), %scale, %bias, %mean, %var, epsilon=0.001)
        }
    After:
        def @main(%x: Tensor[(1, 2, 4, 4), float32], %scale: Tensor[(2,), float32],
                  %bias: Tensor[(2,), float32], %mean: Tensor[(2,), float32], %var: Tensor[(2,), float32]) {
          %factor = Div(%scale, Sqrt(Add(%var, meta[Constant][0])));
          %shift = Sub(%bias, Mul(%mean, %factor));
          Add(Mul(%x, Unsqueeze(%factor, meta[Constant][1])), Unsqueeze(%shift, meta[Constant][1]))
        }
    Constants:
        0.001 [1, 2]
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function as it is in inference."""
        after = rewrite_typed(function, _simplified)
        assert isinstance(after, Function)
        return after


def _simplified(expr: Expr) -> Expr:
    match expr:
        case Call(op=Op(name="BatchNormalization", domain="")):
            return _batch_normalization(expr)
        case Call(op=Op(name="Dropout", domain="")) if not is_random(expr):
            return _dropout(expr)
        case Call(op=Op(name="Identity", domain="")):
            return expr.args[0]
        case TupleGetItem():
            return tuple_field(expr)
        case _:
            return expr


def _dropout(old: Call) -> Expr:
    """Results of a Dropout that drops nothing: its input, and an all-true mask if it has one."""
    value = old.args[0]
    if old.attrs.get(OUTPUTS, 1) == 1:
        return Tuple((value,)) if OUTPUTS in old.attrs else value
    mask = call("Expand", Constant(np.array(True)), call("Shape", value))
    if isinstance(old.checked_type, TupleType):
        mask = with_fields(mask, checked_type=old.checked_type.fields[-1])
    return Tuple((value, mask))


def _batch_normalization(old: Call) -> Expr:
    x, scale, bias, mean, var = old.args
    type_ = x.checked_type
    parts = _tensor_types(scale, bias, mean, var)
    if old.attrs.get("training_mode", 0) or OUTPUTS in old.attrs or len(parts) < 4:
        return old
    if not isinstance(type_, TensorType) or not type_.shape:
        return old
    wide = DType.FLOAT64 if any(part.dtype is DType.FLOAT64 for part in parts) else DType.FLOAT32
    given = old.attrs.get("epsilon", _EPSILON)
    assert isinstance(given, float)
    # ONNX stores numbers in attributes as float32.
    epsilon = Constant(np.asarray(np.float32(given), wide.numpy))
    deviation = call("Sqrt", call("Add", _cast(var, wide), epsilon))
    factor = call("Div", _cast(scale, wide), deviation)
    shift = call("Sub", _cast(bias, wide), call("Mul", _cast(mean, wide), factor))
    ready = [_per_channel(_cast(item, type_.dtype), len(type_.shape)) for item in (factor, shift)]
    return with_fields(call("Add", call("Mul", x, ready[0]), ready[1]), checked_type=old.checked_type)


def _tensor_types(*values: Expr) -> list[TensorType]:
    types = (value.checked_type for value in values)
    return [type_ for type_ in types if isinstance(type_, TensorType)]


def _cast(value: Expr, dtype: DType) -> Expr:
    is_right = isinstance(value.checked_type, TensorType) and value.checked_type.dtype is dtype
    return value if is_right else call("Cast", value, to=elem_type_of(dtype))


def _per_channel(value: Expr, rank: int) -> Expr:
    """A vector over the channels, which are axis 1, such that it broadcasts against a tensor of that rank."""
    if rank <= 2:
        return value
    return call("Unsqueeze", value, Constant(np.arange(1, rank - 1, dtype=np.int64)))
