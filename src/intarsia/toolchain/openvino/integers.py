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

Arithmetic on attention masks (positions are cumulative sums of masks, pairs are products of masks) fits only
while masks are small, which a program does not say. So an input that is used as a mask is taken to be small,
and the kernel refuses a call with other values (`mask_limits`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
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
    Var,
    children,
    post_order,
)
from intarsia.op.constant_argument import constant_arguments
from intarsia.op.device_call import is_shape_operator
from intarsia.toolchain.openvino.integer_ranges import (
    INT32,
    MOVING,
    NO_LIMITS,
    IntegerRanges,
    Interval,
    type_interval,
)

WIDE: Final = frozenset({DType.INT64, DType.UINT64, DType.UINT32})
"""Types that OpenVINO stores as int32."""

_WORDS: Final = WIDE | {DType.INT32}
_MASK_TYPES: Final = frozenset({DType.INT64, DType.INT32})
_MASK_BITS: Final = (15, 12, 10, 7)
"""Bits of masks that are tried; 7 leaves room for the sum of 2**17 elements times a mask in 31 bits."""

_BOOL = frozenset({DType.BOOL})
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


def lost_bits(
    function: Function, module: IRModule | None = None, limits: Mapping[Expr, Interval] = NO_LIMITS
) -> str | None:
    """The first place of a function where OpenVINO may compute other integers than ONNX says; None if none.

    Args:
        function: A function with inferred types.
        module: The global functions that it calls, which are checked by themselves.
        limits: Intervals of parameters that are checked at each call.
    """
    functions = _with_called(function, module)
    places = (_lost_bits(item, limits if item is function else NO_LIMITS) for item in functions)
    return next((place for place in places if place is not None), None)


def mask_limits(function: Function, module: IRModule | None = None) -> Mapping[Expr, Interval]:
    """Limits of masks within which a function loses no bits; empty if it needs none, or if none help.

    The widest of `_MASK_BITS` is taken: what a caller passes beside 0 and 1 should not be refused needlessly.

    Args:
        function: A function with inferred types.
        module: The global functions that it calls.
    """
    if lost_bits(function, module) is None or not (masks := _masks(function)):
        return NO_LIMITS
    for bits in _MASK_BITS:
        limits: dict[Expr, Interval] = dict.fromkeys(masks, (-(2**bits), 2**bits))
        if lost_bits(function, module, limits) is None:
            return limits
    return NO_LIMITS


def _masks(function: Function) -> list[Var]:
    """Integer parameters that are read as truth values, or whose sum is compared with positions.

    They may be moved, cast to other integers, or multiplied with each other before.
    """
    readers: dict[Expr, list[Call]] = defaultdict(list)
    for expr in post_order(function.body):
        if isinstance(expr, Call):
            for arg in dict.fromkeys(expr.args):
                readers[arg].append(expr)
    return [param for param in function.params if _has_type(param, _MASK_TYPES) and _is_mask(param, readers)]


def _is_mask(param: Var, readers: Mapping[Expr, list[Call]]) -> bool:
    waiting: list[Expr] = [param]
    seen = set[Expr]()
    while waiting:
        value = waiting.pop()
        for call in readers.get(value, ()):
            if _reads_mask(call, value):
                return True
            if call not in seen and _carries_mask(call, value):
                seen.add(call)
                waiting.append(call)
    return False


def _reads_mask(call: Call, value: Expr) -> bool:
    """Whether a call casts to truth values, or compares what may be the length of a mask with positions."""
    if not isinstance(call.op, Op) or call.op.domain or not _has_type(call, _BOOL):
        return False
    others = (arg for arg in call.args if arg is not value)
    return call.op.name == "Cast" or (call.op.name in _COMPARISONS and any(map(_are_positions, others)))


def _are_positions(expr: Expr) -> bool:
    """Whether values are those of a Range, moved or not."""
    while isinstance(expr, Call) and isinstance(expr.op, Op) and not expr.op.domain:
        if expr.op.name == "Range":
            return True
        if expr.op.name not in MOVING and expr.op.name != "Cast":
            return False
        expr = expr.args[0]
    return False


def _carries_mask(call: Call, value: Expr) -> bool:
    """Whether a call gives a mask for a mask: moved, of another type of integers, a product, or a length."""
    if not isinstance(call.op, Op) or call.op.domain or not _has_type(call, _MASK_TYPES):
        return False
    positions = MOVING.get(call.op.name, (0,))
    moves = call.op.name in MOVING and (positions is None or call.args.index(value) in positions)
    return moves or call.op.name in ("Cast", "Mul") or (call.op.name == "ReduceSum" and call.args[0] is value)


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


def _lost_bits(function: Function, limits: Mapping[Expr, Interval]) -> str | None:
    ranges, zero_tests = IntegerRanges(function, limits), _zero_tests(function)
    for expr in post_order(function):
        if isinstance(expr, Call):
            complaint = _complaint(expr, ranges, is_alone=False, zero_tests=zero_tests)
            if complaint is not None:
                return complaint
        if isinstance(expr, Function):
            results = expr.body.fields if isinstance(expr.body, Tuple) else (expr.body,)
            wide = [item for item in results if not _fits(item, ranges, INT32)]
            if wide:
                return f"a result of {_type_text(wide[0])} {_range_text(wide[0], ranges)}"
    return None


def _zero_tests(function: Function) -> frozenset[Expr]:
    """Products of lengths that are only compared with 0, as of a tensor that may be empty.

    float32 holds them well enough: a product of numbers from 1 on is no 0, rounded or saturated.
    """
    readers: dict[Expr, list[Expr]] = defaultdict(list)
    for expr in post_order(function):
        for child in children(expr):
            readers[child].append(expr)
    products = (expr for expr in readers if _is_call(expr, "ReduceProd"))
    return frozenset(item for item in products if all(map(_compares_with_zero, readers[item])))


def _compares_with_zero(expr: Expr) -> bool:
    if not isinstance(expr, Call) or not _is_call(expr, "Equal"):
        return False
    return any(isinstance(arg, Constant) and not arg.data.any() for arg in expr.args)


def _is_call(expr: Expr, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and not expr.op.domain and expr.op.name == name


def _complaint(
    call: Call, ranges: IntegerRanges, is_alone: bool, zero_tests: frozenset[Expr] = frozenset()
) -> str | None:
    name = call.op.name if isinstance(call.op, Op) and not call.op.domain else ""
    if call in zero_tests and _is_exact_count(call, ranges):
        return None
    exempt = constant_arguments(call) if name != "Range" else ()
    for position, arg in enumerate(call.args):
        if position in exempt or isinstance(arg, Function) or is_shape_operator(call):
            continue
        if (name, position) in _SATURATING and isinstance(arg, Constant):
            continue
        if not _fits(arg, ranges, INT32) and (not _is_congruent(call, name) or isinstance(arg, Constant)):
            return f"{name or 'a call'} of {_type_text(arg)} {_range_text(arg, ranges)}"
    wrong = _first_wrong(call, name, ranges, is_alone)
    return None if wrong is None else f"{name} of {_type_text(wrong)} {_range_text(wrong, ranges)}"


def _is_exact_count(expr: Expr, ranges: IntegerRanges) -> bool:
    """Whether an integer is not negative and cannot have wrapped around, as a large product may to 0."""
    interval, full = ranges.interval(expr), type_interval(expr)
    assert interval is not None
    assert full is not None
    return interval[0] >= 0 and interval[1] < full[1]


_CONGRUENT = _MODULAR | frozenset(MOVING)
"""Operators that are right modulo 2**32 if their arguments are."""

_SATURATING = frozenset({("NonMaxSuppression", 2)})
"""Arguments that are upper limits: a constant beyond 32 bits saturates, which is no limit either."""


def _is_congruent(call: Call, name: str) -> bool:
    """Whether a call is right modulo 2**32 if its arguments are: all that int32 holds of what is cast."""
    if name == "Cast":
        return _has_type(call, _WORDS) and _has_type(call.args[0], _WORDS)
    return name in _CONGRUENT


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
    if name == "Cast" and _has_type(call, WIDE) and not _is_congruent(call, name):
        return call if not _fits(call, ranges, INT32) else None
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
