"""Integer arithmetic that OpenVINO computes in fewer bits than the program says, without a word.

Measured with OpenVINO 2026.4.1 on the CPU against onnx.reference, values at the limits of each type:

* int64, uint64 and uint32 are stored as int32: inputs, results and what is only moved wrap around
  (2**40 + 3 becomes 3), constants saturate.
* Sums, differences and products of them are therefore right modulo 2**32; anything else that is computed
  from a value beyond 32 bits is wrong.
* Divisions, reductions, comparisons, Relu, Clip, Pow, MatMul and TopK of integers (of int32 as well) are
  computed in float32: wrong beyond 2**24. A comparison is right if one side is smaller than that.
* int8 and uint8 saturate where ONNX wraps around.

So a call is refused unless `IntegerRanges` shows that its values fit. Values that are only moved or cast
pass: `OpenVinoKernel` looks at the inputs of 64 bits that it is called with.
"""

from __future__ import annotations

from typing import Final

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Op,
    TensorType,
    Tuple,
    post_order,
)
from intarsia.op.constant_argument import CONSTANT_ARGUMENTS
from intarsia.toolchain.integer_ranges import INT32, MOVING, IntegerRanges, Interval, type_interval

WIDE: Final = frozenset({DType.INT64, DType.UINT64, DType.UINT32})
"""Types that OpenVINO stores as int32."""

_BYTES = frozenset({DType.INT8, DType.UINT8})
_FLOAT32: Final[Interval] = (-(2**24), 2**24)
_MODULAR = frozenset(
    {"Add", "Sub", "Mul", "Neg", "Sum", "CumSum", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"}
)
_WRAPPING = frozenset({"Add", "Sub", "Mul", "Neg", "Abs", "BitShift"})
_COMPARISONS = frozenset({"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"})
_IN_FLOAT32 = frozenset(
    {
        *("Div", "Mod", "Relu", "Clip", "Pow", "MatMul", "TopK", "ReduceSum"),
        *("ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"),
    }
)


def loses_bits(call: Call) -> bool:
    """Whether a call computes integers that OpenVINO may get wrong, as far as its arguments show."""
    return _complaint(call, IntegerRanges(), is_alone=True) is not None


def lost_bits(function: Function, module: IRModule | None = None) -> str | None:
    """The first place of a function where OpenVINO may compute other integers than ONNX says; None if none.

    Args:
        function: A function with inferred types.
        module: The global functions that it calls, which are checked by themselves.
    """
    places = map(_lost_bits, _with_called(function, module))
    return next((place for place in places if place is not None), None)


def _with_called(function: Function, module: IRModule | None) -> list[Function]:
    """A function, and the global functions that it calls directly or through others."""
    functions, names = [function], set[str]()
    for item in functions:  # grows while it is walked
        for expr in post_order(item):
            if isinstance(expr, GlobalVar) and module is not None and expr.name not in names:
                names.add(expr.name)
                callee = module.functions.get(module.global_var(expr.name)) if expr.name in module else None
                functions += [callee] if isinstance(callee, Function) else []
    return functions


def _lost_bits(function: Function) -> str | None:
    ranges = IntegerRanges(function)
    for expr in post_order(function):
        if isinstance(expr, Call):
            complaint = _complaint(expr, ranges, is_alone=False)
            if complaint is not None:
                return complaint
        if isinstance(expr, Function):
            results = expr.body.fields if isinstance(expr.body, Tuple) else (expr.body,)
            wide = [item for item in results if not _fits(item, ranges, INT32)]
            if wide:
                return f"a result of {_type_text(wide[0])} {_range_text(wide[0], ranges)}"
    return None


def _complaint(call: Call, ranges: IntegerRanges, is_alone: bool) -> str | None:
    name = call.op.name if isinstance(call.op, Op) and not call.op.domain else ""
    exempt = CONSTANT_ARGUMENTS.get(name, ()) if name != "Range" else ()
    for position, arg in enumerate(call.args):
        if position in exempt or isinstance(arg, Function):
            continue
        if not _fits(arg, ranges, INT32) and (name not in _CONGRUENT or isinstance(arg, Constant)):
            return f"{name or 'a call'} of {_type_text(arg)} {_range_text(arg, ranges)}"
    wrong = _first_wrong(call, name, ranges, is_alone)
    return None if wrong is None else f"{name} of {_type_text(wrong)} {_range_text(wrong, ranges)}"


_CONGRUENT = _MODULAR | frozenset(MOVING)
"""Operators that are right modulo 2**32 if their arguments are."""


def _first_wrong(call: Call, name: str, ranges: IntegerRanges, is_alone: bool) -> Expr | None:
    """An argument or the result of a call that does not fit the arithmetic in which OpenVINO computes it."""
    values = [item for item in (*call.args, call) if type_interval(item) is not None]
    data = values[:1] if name in ("TopK", "Clip") or name.startswith("Reduce") else values
    if name in _COMPARISONS and values[:-1]:
        return values[0] if not any(_fits(arg, ranges, _FLOAT32) for arg in values[:-1]) else None
    if name in _IN_FLOAT32 and data and type_interval(call.args[0]) is not None:
        checked = (*data, call) if name != "TopK" else data
        return next((item for item in checked if not _fits(item, ranges, _FLOAT32)), None)
    if name in _WRAPPING and _has_type(call, _BYTES):
        return call
    if is_alone and name in _MODULAR and not _fits(call, ranges, INT32):
        return call
    if name == "Cast" and _has_type(call, WIDE) and not _fits(call, ranges, INT32):
        return call
    return None


def _fits(expr: Expr, ranges: IntegerRanges, limits: Interval) -> bool:
    if type_interval(expr) is None:
        return True
    interval = ranges.interval(expr)
    return interval is None or (limits[0] <= interval[0] and interval[1] <= limits[1])


def _has_type(expr: Expr, types: frozenset[DType]) -> bool:
    return isinstance(expr.checked_type, TensorType) and expr.checked_type.dtype in types


def _type_text(expr: Expr) -> str:
    type_ = expr.checked_type
    return str(type_.dtype) if isinstance(type_, TensorType) else str(type_)


def _range_text(expr: Expr, ranges: IntegerRanges) -> str:
    interval = ranges.interval(expr)
    assert interval is not None
    return f"may be {interval[0]} to {interval[1]}"
