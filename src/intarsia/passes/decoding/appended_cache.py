"""A cache with a number of valid tokens for each text, as one that grows by the same tokens for all texts.

Before:
    def @main(%past: Tensor[(b, 2, p, 4), float32], %new: Tensor[(b, 2, n, 4), float32],
        %at: Tensor[(b,), int64], %room: Tensor[(4,), int64]) {
      TensorScatter(Concat(%past, Expand(float32(0.0), %room), axis=2), %new, %at, axis=2)
    }
After:
    def @main(...) {
      Concat(%past, %new, axis=2)
    }

What reads %at reads the length of %past. The importer writes this form for GroupQueryAttention.
"""

from __future__ import annotations

import numpy as np

from intarsia.ir import Call, Constant, Expr, Function, Var, post_order
from intarsia.op import call
from intarsia.passes.decoding.split_products import size_of
from intarsia.passes.rules.rewrite_original import rewrite_original
from intarsia.passes.rules.tensor_facts import int_attr, operator_name


def with_appended_cache(function: Function) -> Function:
    """Return the function whose new tokens stand behind the whole past; the same if it has no such cache.

    Equal to the function where all tokens of the past are valid in each text.
    """
    scattered = {
        node: past
        for node in post_order(function)
        if isinstance(node, Call) and (past := scattered_past(node)) is not None
    }
    if not scattered:
        return function
    starts = {node.args[2]: (past, int_attr(node.attrs, "axis", -2)) for node, past in scattered.items()}

    def rule(node: Expr, current: Expr) -> Expr:
        if node in starts:
            past, axis = starts[node]
            return call("Expand", size_of(past, axis), size_of(past, 0))
        if node in scattered and isinstance(current, Call):
            return call("Concat", scattered[node], current.args[1], axis=int_attr(current.attrs, "axis", -2))
        return current

    return rewrite_original(function, rule)


def scattered_past(node: Call) -> Var | None:
    """Return the parameter into which new tokens are written, with room behind it; None for other nodes."""
    if operator_name(node) != "TensorScatter" or len(node.args) < 3:
        return None
    joined = node.args[0]
    if operator_name(joined) != "Concat" or not isinstance(joined, Call) or len(joined.args) != 2:
        return None
    past, room = joined.args
    same_axis = int_attr(joined.attrs, "axis", 0) == int_attr(node.attrs, "axis", -2)
    is_linear = node.attrs.get("mode", "linear") == "linear"
    return past if isinstance(past, Var) and _is_zeros(room) and same_axis and is_linear else None


def _is_zeros(room: Expr) -> bool:
    if operator_name(room) != "Expand" or not isinstance(room, Call):
        return False
    value = room.args[0]
    return isinstance(value, Constant) and not np.any(value.data)
