"""Mathematical functions of one argument: Abs, Exp, Sin, Round and their kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import call as intrinsic
from intarsia.native.te.operators import scalar_functions
from intarsia.native.te.operators.broadcasting import elementwise
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.tensor import Tensor

_INTRINSICS = {
    **{name: name.lower() for name in ("Exp", "Log", "Sqrt", "Erf", "Sin", "Cos", "Tan", "Asin", "Acos")},
    **{name: name.lower() for name in ("Atan", "Sinh", "Cosh", "Tanh", "Floor", "Ceil")},
    "Round": "round_even",
}
_FUNCTIONS: dict[str, Callable[[Expression], Expression]] = {
    "Abs": scalar_functions.absolute,
    "Neg": lambda x: -x,
    "Reciprocal": lambda x: 1.0 / x,
    "Sign": scalar_functions.sign,
    "Asinh": scalar_functions.asinh,
    "Acosh": scalar_functions.acosh,
    "Atanh": scalar_functions.atanh,
}


@compute_rule(*_INTRINSICS)
@in_float32
def function(call: ComputeCall) -> Sequence[Tensor]:
    """Declare an intrinsic of floats, element by element."""
    return elementwise(call, lambda x: intrinsic(_INTRINSICS[call.op_name], x))


@compute_rule(*_FUNCTIONS)
@in_float32
def composed(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a function of floats, element by element; Abs, Neg and Sign of integers as well."""
    return elementwise(call, _FUNCTIONS[call.op_name])
