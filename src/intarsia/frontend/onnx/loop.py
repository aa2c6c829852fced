"""Special cases of Loop: the condition is optional, and states may change their shape."""

from __future__ import annotations

import numpy as np

from intarsia.frontend.onnx.constant_node import owned_constant
from intarsia.ir import Constant, Function, Span, TensorType, Tuple, Type


def always(span: Span | None) -> Constant:
    """Return the condition of a Loop without one: true."""
    return owned_constant(np.array(True), span)


def without_condition(body: Function) -> Function:
    """The body of a Loop that has no condition, returning "always" as its own.

    ONNX ignores what such a body returns; onnx's reference evaluator ends the loop with it.
    """
    results = body.body.fields if isinstance(body.body, Tuple) else (body.body,)
    return Function(body.params, Tuple((always(body.span), *results[1:])), body.attrs)


def loop_state_type(declared: Type | None, initial: Type | None) -> Type | None:
    """Return the type of a Loop's state; its shape only as declared, since iterations may change it."""
    if isinstance(declared, TensorType) and declared.shape is not None:
        return declared
    if declared is None and isinstance(initial, TensorType):
        return TensorType(None, initial.dtype)
    return declared
