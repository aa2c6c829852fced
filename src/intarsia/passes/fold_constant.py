"""Evaluation at compile time of what depends on constants and known shapes only."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    is_compatible,
)
from intarsia.op import rewrite_typed
from intarsia.op.evaluate import Array, can_evaluate, evaluate_call
from intarsia.op.known_value import known_value, record_known_value
from intarsia.op.operator_facts import OperatorTrait, OpPatternKind
from intarsia.op.operator_table import facts_of, op_pattern
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.purity import is_random
from intarsia.op.simulated_quantize_op import SIMULATED_QUANTIZE
from intarsia.passes.rules.tuple_field import tuple_field
from intarsia.support.errors import ExecutionError
from intarsia.transform import DiagnosticLevel, FunctionPass, PassContext, register_pass

LARGEST_GROWTH = 256 << 20
"""Bytes by which all results of a function together may be larger than the constants that they are made of.

A file of some kilobytes can have hundreds of ConstantOfShape nodes just below `max_bytes`."""

LARGEST_SLOW = 1 << 16
"""Elements in and out of an operator whose reference implementation may be a Python loop over them."""

_FAST = frozenset(
    {OpPatternKind.ELEMWISE, OpPatternKind.BROADCAST, OpPatternKind.INJECTIVE, OpPatternKind.COMM_REDUCE}
)
_FAST_PRODUCTS = frozenset({"MatMul", "Gemm", "Einsum"})
_ANNOTATIONS = frozenset({"on_device", "device_copy", SIMULATED_QUANTIZE})
"""Operators of the domain "intarsia" that say something about a constant."""

_DEQUANTIZING = frozenset({"DequantizeLinear"})


@register_pass
@dataclass(frozen=True)
class FoldConstant(FunctionPass, opt_level=2, required=("InferType",)):
    """Replaces what is known at compile time by its value.

    * Calls of operators on constants, by onnx's reference implementation; what that cannot evaluate stays.
    * Shapes and sizes of tensors of static type, and what is computed from them.
    * An If whose condition is constant, by its branch; a field of a written-out tuple, by the field.

    Random operators are never evaluated, nor Loop, Scan and SequenceMap, nor calls of functions, nor the
    operators that place a value on a device or annotate it with a quantisation, nor DequantizeLinear:
    toolchains that compute with quantized weights look for it. Operators that the reference computes in
    Python loops are evaluated up to `LARGEST_SLOW` elements. Variables are not looked through:
    ToGraphNormalForm does that.

    Before:
        def @main(%x: Tensor[(2, 3), float32]) {
          if (Equal(Size(%x), meta[Constant][0])) { Relu(%x) } else { Neg(%x) }
        }
    After:
        def @main(%x: Tensor[(2, 3), float32]) { Relu(%x) }
    Constants:
        6

    Attributes:
        max_bytes: A larger result is kept as a call, so that programs and artifacts do not grow, unless the
            constants that it is computed from are together at least as large (a transposed weight).
            All results of a function may exceed their constants by `LARGEST_GROWTH`.
    """

    max_bytes: int = 16 << 20

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with everything evaluated that is known."""
        after = rewrite_typed(function, _Folding(self.max_bytes, ctx).folded)
        assert isinstance(after, Function)
        return after


class _Folding:
    """The evaluation of one function.

    Args:
        max_bytes: The most bytes of a constant that is made; see the pass.
        ctx: Context for diagnostics.
    """

    def __init__(self, max_bytes: int, ctx: PassContext) -> None:
        self._max_bytes = max_bytes
        self._ctx = ctx
        self._growth = LARGEST_GROWTH

    def folded(self, expr: Expr) -> Expr:
        """The value of an expression where it is known, else the expression."""
        match expr:
            case Call(op=Op()):
                return self._value_of(expr)
            case TupleGetItem():
                return tuple_field(expr)
            case If(cond=Constant(data=data)) if data.size == 1:
                return expr.true_branch if data.item() else expr.false_branch
            case _:
                return expr

    def _value_of(self, call: Call) -> Expr:
        if _is_kept(call):
            return call
        if not can_evaluate(call):
            known = _known_shape(call)
            return call if known is None else Constant(known)
        if not self._is_worthwhile(call):
            self._decline(call, "its result is larger than max_bytes, or slow to compute")
            return call
        try:
            results = evaluate_call(call)
        except ExecutionError as error:
            self._decline(call, error.problem)
            return call
        values = results if isinstance(results, tuple) else (results,)
        size = sum(map(_bytes, values))
        if not self._is_small(call, size):
            self._decline(call, f"its result has {size} bytes (max_bytes={self._max_bytes})")
            return call
        self._growth -= max(0, size - _argument_bytes(call))
        constants = tuple(map(Constant, values))
        return Tuple(constants) if isinstance(results, tuple) else constants[0]

    def _decline(self, call: Call, reason: str) -> None:
        text = f"is computed at run time, though its arguments are constants: {reason}"
        self._ctx.diagnose(call, DiagnosticLevel.MISSED, text)

    def _is_worthwhile(self, call: Call) -> bool:
        """Whether to evaluate a call, as far as its type and its arguments say."""
        assert isinstance(call.op, Op)
        if facts_of(call.op).has(OperatorTrait.SIZED) and not _has_static_type(call):
            return False
        return self._is_small(call, _declared_bytes(call.checked_type)) and (
            _is_fast(call) or _elements(call) <= LARGEST_SLOW
        )

    def _is_small(self, call: Call, size: int) -> bool:
        given = _argument_bytes(call)
        return size <= max(self._max_bytes, given) and size - given <= self._growth


def _is_kept(call: Call) -> bool:
    assert isinstance(call.op, Op)
    kept = _ANNOTATIONS if call.op.domain == INTARSIA_DOMAIN else _DEQUANTIZING
    return is_random(call) or call.op.name in kept


def _known_shape(call: Call) -> Array | None:
    """The value of a call that is known though its arguments are not: the shape of a static tensor."""
    if known_value(call) is None:
        record_known_value(call)  # of a call that was built without op.call
    value = known_value(call)
    if value is None or not is_compatible(TensorType.of(value), call.checked_type):
        return None
    return value


def _is_fast(call: Call) -> bool:
    assert isinstance(call.op, Op)
    is_own = call.op.domain == INTARSIA_DOMAIN
    return is_own or op_pattern(call.op) in _FAST or (call.op.name in _FAST_PRODUCTS and not call.op.domain)


def _arrays(call: Call) -> tuple[Array, ...]:
    return tuple(arg.data for arg in call.args if isinstance(arg, Constant))


def _argument_bytes(call: Call) -> int:
    """Bytes of the constants among the arguments; one that is given twice counts once."""
    return sum(map(_bytes, {id(data): data for data in _arrays(call)}.values()))


def _bytes(array: Array) -> int:
    """Bytes of an array, the texts of strings included."""
    texts = sum(map(len, array.flat)) if array.dtype == object else 0
    return array.nbytes + texts


def _has_static_type(call: Call) -> bool:
    type_ = call.checked_type
    fields = type_.fields if isinstance(type_, TupleType) else (type_,)
    return all(isinstance(item, TensorType) and item.is_static for item in fields)


def _elements(call: Call) -> int:
    """Elements of the arguments and of the results whose size is known."""
    results = sum(prod(type_.static_shape) for type_ in _static_parts(call.checked_type))
    return results + sum(data.size for data in _arrays(call))


def _declared_bytes(type_: Type | None) -> int:
    """Bytes of the results whose size is known."""
    return sum(prod(part.static_shape) * part.dtype.numpy.itemsize for part in _static_parts(type_))


def _static_parts(type_: Type | None) -> tuple[TensorType, ...]:
    parts = type_.fields if isinstance(type_, TupleType) else (type_,)
    return tuple(part for part in parts if isinstance(part, TensorType) and part.is_static)
