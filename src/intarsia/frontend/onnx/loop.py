"""What is particular about Loop: its condition may be left out, and its states may change their shape."""

from __future__ import annotations

import numpy as np

from intarsia.frontend.onnx.constant_node import owned_constant
from intarsia.ir import Constant, Function, Span, TensorType, Tuple, Type


def always(span: Span | None) -> Constant:
    """The condition that a Loop without one has."""
    return owned_constant(np.array(True), span)


def without_condition(body: Function) -> Function:
    """The body of a Loop that has no condition, returning "always" as its own.

    ONNX ignores what such a body returns; onnx's reference evaluator ends the loop with it.
    """
    results = body.body.fields if isinstance(body.body, Tuple) else (body.body,)
    return Function(body.params, Tuple((always(body.span), *results[1:])), body.attrs)


def loop_state_type(declared: Type | None, initial: Type | None) -> Type | None:
    """A state may change its shape between iterations, so only what the body declares is known."""
    if isinstance(declared, TensorType) and declared.shape is not None:
        return declared
    if declared is None and isinstance(initial, TensorType):
        return TensorType(None, initial.dtype)
    return declared
