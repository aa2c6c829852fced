"""Types of calls, through onnx's own inference per node, cached by operator, attributes and input types."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy.typing as npt

from intarsia.ir import (
    ABSENT,
    ANY,
    Attrs,
    Call,
    Constant,
    Dim,
    DType,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    Op,
    TensorType,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    is_compatible,
    join_types,
    with_fields,
    with_module_fields,
)
from intarsia.op.attribute_check import check_attribute_values
from intarsia.op.control_flow import BODY_OPERATORS, control_flow_types
from intarsia.op.intarsia_ops import INTARSIA_OPS, intarsia_operator_type
from intarsia.op.known_value import known_value, record_known_value
from intarsia.op.let_types import rewrite_with_lets
from intarsia.op.ml_types import refined_ml_types
from intarsia.op.node import OUTPUTS, node_of
from intarsia.op.onnx_types import tensor_to_proto, type_from_proto, type_to_proto
from intarsia.op.opaque import operator_domain
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import facts_of
from intarsia.op.opset import (
    INTARSIA_DOMAIN,
    ML_DOMAIN,
    OPSETS,
    has_variadic_output,
    newest_schema,
    schema_of,
    unknown_operator,
    version_of,
)
from intarsia.op.shape_check import check_shapes
from intarsia.support.errors import InvalidModelError

if TYPE_CHECKING:
    from onnx import NodeProto, TypeProto
    from onnx.defs import OpSchema

_SHAPED_AS_THE_FIRST = frozenset({"GroupNormalization", "MeanVarianceNormalization"})
"""Operators whose shape onnx does not infer; it is that of the first argument."""

_IR_VERSION = 13
_LEAVES = (Var, Constant, TupleGetItem)
"""Arguments whose types and values never become better known."""
_SETTLED: WeakSet[Expr] = WeakSet()
"""Calls of operators whose types were inferred from all that will ever be known of their arguments."""
Data = tuple[tuple[int, tuple[int, ...], str, bytes], ...]


def infer_call_type(op: Expr, args: tuple[Expr, ...], attrs: Attrs) -> Type | None:
    """The type of a call; None where it cannot be known (some argument's type is unknown).

    Raises:
        InvalidModelError: Unknown operator or attribute, wrong number of arguments, types that do not fit.
        UnsupportedModelError: The operator's domain is unknown.
    """
    if isinstance(op, Op):
        return _operator_type(op, args, attrs)
    return op.checked_type.result if isinstance(op.checked_type, FuncType) else None


def _operator_type(op: Op, args: tuple[Expr, ...], attrs: Attrs) -> Type | None:
    types = tuple(arg.checked_type for arg in args)
    if op.domain == INTARSIA_DOMAIN:
        if op.name not in INTARSIA_OPS:
            raise unknown_operator(op.name, op.domain)
        return intarsia_operator_type(op.name, types, attrs)
    check_attributes(op, (name for name in attrs if name != OUTPUTS))
    check_attribute_values(str(op), attrs)
    returns_tuple = OUTPUTS in attrs
    outputs = attrs.get(OUTPUTS, 1)
    assert isinstance(outputs, int)
    if op.name in BODY_OPERATORS and not op.domain:
        results = control_flow_types(op.name, types, attrs)
    else:
        if None in types:
            return None
        known: tuple[Type, ...] = types  # type: ignore[assignment]  # none of them is None
        infer = _infer_outputs if op.domain in OPSETS else _infer_opaque_outputs
        results = infer(op.name, op.domain, attrs, known, _data(op, args), outputs)
    if not returns_tuple:
        return results[0] if results else None
    fields = tuple(item for item in results[:outputs] if item is not None)
    return TupleType(fields) if len(fields) == outputs else None


def check_attributes(op: Op, attrs: Iterable[str]) -> None:
    """Every attribute must be one that the operator's schema declares.

    Raises:
        InvalidModelError: One is not.
    """
    if op.domain == INTARSIA_DOMAIN:
        return  # checked with the types
    declared = schema_of(op.name, op.domain).attributes
    unknown = next((name for name in attrs if name not in declared), None)
    if unknown is not None:
        known = ", ".join(sorted(declared)) or "none"
        raise InvalidModelError(
            f"operator {str(op)!r} has no attribute {unknown!r}", help=f"its attributes: {known}"
        )


def _data(op: Op, args: tuple[Expr, ...]) -> Data:
    """Values of the arguments that may decide the result's shape."""
    values = ((position, known_value(arg)) for position, arg in enumerate(args))
    return tuple(
        (position, value.shape, DType.of(value).value, value.tobytes())
        for position, value in values
        if value is not None and _decides_shape(op, value)
    )


def _decides_shape(op: Op, value: npt.NDArray[Any]) -> bool:
    dtype = DType.of(value)
    return value.ndim <= 1 and (
        dtype in (DType.INT64, DType.INT32)
        or (dtype.is_float and facts_of(op).has(OperatorTrait.FLOAT_SIZES))
    )


@lru_cache(maxsize=1 << 16)
def _infer_outputs(
    name: str,
    domain: str,
    attrs: Attrs,
    types: tuple[Type, ...],
    data: Data,
    outputs: int,
) -> tuple[Type | None, ...]:
    schema = schema_of(name, domain)
    args = tuple(_Placeholder(item) for item in types)
    node = node_of(Op(name, domain), args, attrs, outputs)  # type: ignore[arg-type]  # only types are read
    _check_type_variables(schema, types, node)
    try:
        inferred = _infer_node(schema, node, types, data, {**OPSETS, domain: version_of(name, domain)})
    except InvalidModelError:
        widened = newest_schema(name, domain)
        if widened.since_version == schema.since_version:
            raise
        # A newer version of the operator may take more element types; the reference toolchain runs those.
        inferred = _infer_node(widened, node, types, data, {**OPSETS, domain: widened.since_version})
    if not domain:
        check_shapes(name, attrs, types)
    results = tuple(type_from_proto(inferred[key]) if key in inferred else None for key in node.output)
    if domain == ML_DOMAIN:
        return refined_ml_types(name, types, attrs, results)
    if name == "Reshape" and not domain:
        return (_with_symbol(_with_rank(results[0], types[1]), types[0]),)
    return types[:1] if name in _SHAPED_AS_THE_FIRST and not domain else results


def _infer_opaque_outputs(
    name: str,
    domain: str,
    attrs: Attrs,
    types: tuple[Type, ...],
    data: Data,
    outputs: int,
) -> tuple[Type | None, ...]:
    """The types of an opaque operator's results, as the package that declares its domain infers them."""
    import numpy as np

    args = tuple(_Placeholder(item) for item in types)
    node = node_of(Op(name, domain), args, attrs, outputs)  # type: ignore[arg-type]  # only types are read
    values = {p: np.frombuffer(raw, dtype).reshape(shape) for p, shape, dtype, raw in data}
    return operator_domain(domain).infer(node, types, values)


def _infer_node(
    schema: OpSchema, node: NodeProto, types: tuple[Type, ...], data: Data, opsets: Mapping[str, int]
) -> dict[str, TypeProto]:
    import numpy as np
    from onnx import checker, helper, shape_inference

    try:
        inferred: dict[str, TypeProto] = shape_inference.infer_node_outputs(
            schema,
            node,
            {f"i{p}": type_to_proto(item) for p, item in enumerate(types) if item != ABSENT},
            {
                f"i{p}": tensor_to_proto(np.frombuffer(raw, dtype).reshape(shape))
                for p, shape, dtype, raw in data
            },
            {},
            [helper.make_opsetid(key, version) for key, version in opsets.items()],
            _IR_VERSION,
        )
    except (
        shape_inference.InferenceError,
        checker.ValidationError,
        RuntimeError,
        ValueError,
        IndexError,
    ) as error:
        raise InvalidModelError(_reason(node.op_type, types, error)) from None
    return inferred


class _Placeholder:
    """Stands for an argument of which only the type is known."""

    def __init__(self, checked_type: Type) -> None:
        self.checked_type = checked_type


def _reason(name: str, types: tuple[Type, ...], error: Exception) -> str:
    text = " ".join(str(error).split()).replace("[ShapeInferenceError] ", "")
    shown = ", ".join(str(item) for item in types)
    return f"operator {name!r} cannot be applied to ({shown}): {text[:300]}"


def _check_type_variables(schema: OpSchema, types: tuple[Type, ...], node: NodeProto) -> None:
    """Refuse arguments that bind one type variable of the schema to two element types."""
    bound: dict[str, DType] = {}
    formals = list(schema.inputs)
    for position, type_ in enumerate(types):
        formal = formals[min(position, len(formals) - 1)] if formals else None
        if formal is None or not isinstance(type_, TensorType) or not formal.is_homogeneous:
            continue
        if "(" in formal.type_str:
            continue  # a concrete type such as tensor(int64): onnx checks it
        first = bound.setdefault(formal.type_str, type_.dtype)
        if first != type_.dtype:
            raise InvalidModelError(
                f"operator {node.op_type!r} has an argument {formal.name!r} of {type_.dtype}, "
                f"expected {first} as for the arguments before it",
                help="insert a Cast in the model",
            )


def _with_rank(result: Type | None, shape: Type) -> Type | None:
    """A reshaped tensor's rank is the length of the shape argument, even where its values are unknown."""
    if isinstance(result, TensorType) and result.shape is None and isinstance(shape, TensorType):
        length = shape.shape[0] if shape.shape else None
        if isinstance(length, int):
            return TensorType((ANY,) * length, result.dtype)
    return result


def _with_symbol(result: Type | None, before: Type) -> Type | None:
    """A reshaped tensor whose only unknown dimension has to be a symbolic one of the tensor before.

    So it is where the numbers among the dimensions have the same product, and one symbol is left over:
    (1, seq, 16) as (-1, 1, 16) is (seq, 1, 16).
    """
    if not isinstance(result, TensorType) or not isinstance(before, TensorType):
        return result
    if result.shape is None or before.shape is None or result.shape.count(ANY) != 1:
        return result
    if ANY in before.shape or not 0 < _product(before.shape) == _product(result.shape):
        return result
    read = Counter(dim for dim in before.shape if not isinstance(dim, int))
    kept = Counter(dim for dim in result.shape if not isinstance(dim, int) and dim != ANY)
    left = list((read - kept).elements())
    if kept - read or len(left) != 1:
        return result
    return TensorType(tuple(left[0] if dim == ANY else dim for dim in result.shape), result.dtype)


def _product(shape: Iterable[Dim]) -> int:
    return math.prod(dim for dim in shape if isinstance(dim, int))


def infer_types(module: IRModule) -> IRModule:
    """Fill in the types that are not known, bottom-up, and correct those that contradict inference.

    A known type that says more than inference (from the model's declarations, say) is kept.

    Calls of global functions take the result type of the function, to a fixed point over recursion.

    Raises:
        InvalidModelError: Types that do not fit.
    """
    while True:
        results = {name: function.result_type for name, function in _by_name(module).items()}

        def rule(expr: Expr, results: dict[str, Type | None] = results) -> Expr:
            return _typed(expr, results)

        functions = {
            var: rewrite_with_lets(function, rule) if isinstance(function, Function) else function
            for var, function in module.functions.items()
        }
        after = with_module_fields(module, functions=functions)  # type: ignore[arg-type]  # the rule keeps kinds
        if after is module:
            return module
        module = after


def _by_name(module: IRModule) -> dict[str, Function]:
    return {var.name: function for var, function in module.graph_functions.items()}


def typed(expr: Expr) -> Expr:
    """An expression with its type inferred from those of its children, where it can be known."""
    if isinstance(expr, Call) and isinstance(expr.op, GlobalVar):
        return expr if expr.checked_type is not None else with_fields(expr, checked_type=_rechecked(expr))
    return _typed(expr, {})


def _typed(expr: Expr, globals_: dict[str, Type | None]) -> Expr:
    match expr:
        case Call(op=GlobalVar(name=name)):
            return with_fields(expr, checked_type=globals_.get(name) or expr.checked_type)
        case Call():
            if expr in _SETTLED:
                return expr
            return settled(with_fields(expr, checked_type=_rechecked(expr)))
    if expr.checked_type is not None and not _has_open_result(expr):
        return expr
    match expr:
        case If():
            joined = join_types(expr.true_branch.checked_type, expr.false_branch.checked_type)
            known = expr.true_branch.checked_type or expr.false_branch.checked_type
            return with_fields(expr, checked_type=joined or (known if _one_unknown(expr) else None))
        case Function():
            params = tuple(param.checked_type for param in expr.params)
            return with_fields(expr, checked_type=FuncType(params, expr.body.checked_type))
        case _:
            return expr


def settled(call: Call) -> Call:
    """Record what is known of a call whose type was inferred, which is returned."""
    record_known_value(call)
    if _is_settled(call):
        _SETTLED.add(call)
    return call


def _is_settled(call: Call) -> bool:
    """Return whether nothing can say more about a call of ONNX's or our operators whose type was inferred.

    Operators of other packages may be registered again, and functions get other types.
    """
    if call.checked_type is None or not isinstance(call.op, Op):
        return False
    if call.op.domain not in OPSETS or call.op.name in BODY_OPERATORS:
        return False
    return all(isinstance(arg, _LEAVES) or arg in _SETTLED for arg in call.args)


def _rechecked(call: Call) -> Type | None:
    """The inferred type, or the one that the call has where that is as right and says as much or more."""
    inferred = infer_call_type(call.op, call.args, call.attrs)
    known = call.checked_type
    return known if known is not None and is_compatible(inferred, known) else inferred


def _has_open_result(expr: Expr) -> bool:
    return isinstance(expr, Function) and expr.result_type is None


def _one_unknown(expr: If) -> bool:
    return (expr.true_branch.checked_type is None) != (expr.false_branch.checked_type is None)


def returns_tuple(name: str, domain: str, outputs: int) -> bool:
    """Whether a call with that many results returns a tuple (attribute `outputs`) or a single value."""
    return outputs > 1 or has_variadic_output(name, domain)
