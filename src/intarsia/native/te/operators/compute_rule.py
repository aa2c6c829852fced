"""The registry of compute rules: how the results of each ONNX operator are declared as tensor expressions.

@compute_rule("Relu")
def relu(call: ComputeCall) -> Sequence[Tensor]:
    (x,) = (call.input(0),)
    return [te.compute(call.shape, lambda *i: te.maximum(x[i], 0.0), call.name)]

A rule declares what is computed in stages that a scheduler can move: padding, one reduction, then what is
done to each element. It raises `call.not_covered(reason)` for forms that it does not cover. Input and
output tensors have the element types that ONNX says; a decorator below `@compute_rule`, `in_float32`, lets a
rule for floats compute float16 and bfloat16 in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy.typing as npt

from intarsia.ir import ABSENT, Attrs, Call, Constant, DType, Expr, Op, TensorType, TupleType
from intarsia.ir.scalar_types import LOOP_DTYPES, UNPACKED
from intarsia.native.te.compute import placeholder
from intarsia.native.te.operators.compute_call import ComputeCall, NotCoveredError
from intarsia.native.te.operators.registered_operator import compute_registered, registered_operator
from intarsia.native.te.tensor import Tensor
from intarsia.op.known_value import known_value
from intarsia.op.node import OUTPUTS
from intarsia.op.onnx_types import attributes_from_protos
from intarsia.op.opset import schema_of
from intarsia.support.errors import IntarsiaError, UsageError
from intarsia.support.registry import Registry

__all__ = [
    "ComputeCall",
    "NotCoveredError",
    "Rule",
    "attributes_with_defaults",
    "compute",
    "compute_call_of",
    "compute_rule",
    "compute_rules",
    "reason_not_covered",
]

Rule: TypeAlias = Callable[[ComputeCall], Sequence[Tensor]]
"""Function from a call to a tensor for each of `call.output_types`, of those shapes and element types."""

_RULES: Registry[Rule] = Registry("compute rule")
_reasons: WeakKeyDictionary[Call, str | None] = WeakKeyDictionary()


def compute_rule(*op_names: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of operators, by name; those of other domains are "domain::name".

    Raises:
        UsageError: One has a rule already.
    """

    def register(rule: Rule) -> Rule:
        for op_name in op_names:
            _RULES.register(op_name, rule)
        return rule

    return register


def compute_rules() -> Registry[Rule]:
    """Return the rules by operator; importing `native.te.operators` fills it."""
    return _RULES


def compute(call: ComputeCall) -> tuple[Tensor, ...]:
    """Declare the results of a call by its rule.

    Raises:
        NotCoveredError: The operator has no rule, or it does not cover this form.
    """
    definition = registered_operator(call.op_name)
    if call.op_name not in _RULES and (definition is None or definition.compute is None):
        raise NotCoveredError(f"operator {call.op_name!r} has no native kernel")
    try:
        if definition is not None:
            return compute_registered(definition, call)
        results = tuple(_RULES[call.op_name](call))
    except UsageError as error:  # a tensor expression that cannot be
        raise call.not_covered(f"these attributes and shapes ({error.problem})") from error
    except (IntarsiaError, MemoryError, RecursionError):
        raise
    except Exception as error:  # attributes or shapes that no valid model has: other toolchains may say more
        detail = " ".join(f"{type(error).__name__}: {error}".split())
        raise call.not_covered(f"these attributes and shapes ({detail[:300]})") from error
    types = tuple(TensorType(tensor.shape, tensor.dtype) for tensor in results)
    assert types == call.output_types, f"rule of {call.op_name}: {types}; expected {call.output_types}"
    return results


def compute_call_of(call: Call, name: str = "") -> ComputeCall:
    """Return the ComputeCall of a typed call of the graph, with a placeholder for each argument.

    Placeholders are named `name`.x0, `name`.x1 ... by position; those of constants have the attribute
    `constant`. A rule need not read them all: constants may be read at compile time.

    Args:
        call: Call whose arguments may be any expressions.
        name: Name as in `ComputeCall`; the operator in lower case if it is empty.

    Raises:
        NotCoveredError: It is no call of an operator, or a type is not known, not static, or of elements that
            loop functions do not compute with.
    """
    if not isinstance(call.op, Op):
        raise NotCoveredError("a call of a function has no compute rule: only operators have")
    op_name, name = str(call.op), name or call.op.name.lower()
    held = UNPACKED if _dequantises_constant(call) else {}
    return ComputeCall(
        op_name,
        tuple(_placeholder(arg, f"{name}.x{i}", op_name, held) for i, arg in enumerate(call.args)),
        attributes_with_defaults(op_name, call.attrs),
        tuple(_static(type_, op_name) for type_ in _results(call)),
        tuple(_value(arg) for arg in call.args),
        name,
    )


def reason_not_covered(call: Call) -> str | None:
    """Return why a typed call has no native kernel, or None if it has one; cached for each call.

    The rule is run on placeholders, which takes well under a millisecond: nothing is lowered.
    """
    if call not in _reasons:
        try:
            compute(compute_call_of(call))
            _reasons[call] = None
        except NotCoveredError as error:
            _reasons[call] = error.problem
    return _reasons[call]


def attributes_with_defaults(op_name: str, attrs: Attrs) -> Attrs:
    """Return the attributes of a call, with the schema's defaults for those that are not given."""
    given = {name: value for name, value in attrs.items() if name != OUTPUTS}
    return Attrs({**_defaults(op_name), **given})


@cache
def _defaults(op_name: str) -> Attrs:
    if op_name not in _RULES or "::" in op_name:
        return Attrs()
    protos = (attribute.default_value for attribute in schema_of(op_name).attributes.values())
    return attributes_from_protos([proto for proto in protos if proto.type])


def _results(call: Call) -> tuple[Any, ...]:
    match call.checked_type:
        case TupleType(fields=fields):
            return fields
        case single:
            return (single,)


def _dequantises_constant(call: Call) -> bool:
    """Return whether a call makes float32 of a constant: a region reads its bits, or computes it once."""
    are_constant = all(isinstance(arg, Constant) or arg.checked_type == ABSENT for arg in call.args)
    result = call.checked_type
    is_float = isinstance(result, TensorType) and result.dtype is DType.FLOAT32
    return str(call.op) == "DequantizeLinear" and are_constant and is_float


def _placeholder(arg: Expr, name: str, op_name: str, held: Mapping[DType, DType]) -> Tensor | None:
    given = arg.checked_type
    if given == ABSENT:
        return None
    if isinstance(given, TensorType) and given.dtype in held:
        given = replace(given, dtype=held[given.dtype])
    type_ = _static(given, op_name)
    attrs = {"constant": 1} if isinstance(arg, Constant) else {}
    return placeholder(type_.static_shape, type_.dtype, name, attrs)


def _static(type_: Any, op_name: str) -> TensorType:
    if not isinstance(type_, TensorType) or not type_.is_static:
        shown = "an unknown type" if type_ is None else str(type_)
        raise NotCoveredError(f"operator {op_name!r} has no native kernel for {shown}")
    if type_.dtype not in LOOP_DTYPES:
        raise NotCoveredError(f"operator {op_name!r} has no native kernel for {type_.dtype.value}")
    return type_


def _value(arg: Expr) -> npt.NDArray[Any] | None:
    return arg.data if isinstance(arg, Constant) else known_value(arg)
