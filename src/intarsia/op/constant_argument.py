"""Arguments that say what the result looks like: shapes, axes, pads, sizes.

Types can be inferred, and most toolchains can compile the call, only while these are constants, so that a
transformation must not turn them into variables.
"""

from __future__ import annotations

from intarsia.ir import ABSENT, Call, Constant, Op
from intarsia.op.operator_table import facts_of


def constant_arguments(call: Call) -> tuple[int, ...]:
    """The positions of such arguments of a call; none of a call of a function.

    Raises:
        InvalidModelError: ONNX's default domain has no such operator.
    """
    return facts_of(call.op).constant_arguments if isinstance(call.op, Op) else ()


def has_open_shape(call: Call) -> bool:
    """Whether such an argument of an operator call is neither a constant nor absent."""
    return any(
        not isinstance(arg, Constant) and arg.checked_type != ABSENT
        for position in constant_arguments(call)
        if position < len(call.args)
        for arg in (call.args[position],)
    )
