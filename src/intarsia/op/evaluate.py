"""The value of one call of an operator on constants, by onnx's reference implementation of the operator.

What that returns is not always what the operator's type says: Python scalars, wider element types, arrays of
strings of fixed width, and views of its inputs. Results here have the type that inference says.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import (
    ABSENT,
    Call,
    Constant,
    DType,
    Op,
    TensorType,
    TupleType,
    Type,
    is_compatible,
)
from intarsia.op.infer import infer_call_type
from intarsia.op.intarsia_ops import layout_permutation
from intarsia.op.node import OUTPUTS, node_of
from intarsia.op.onnx_types import type_to_proto
from intarsia.op.opaque import operator_domain
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import facts_of
from intarsia.op.opset import INTARSIA_DOMAIN, OPSETS, versions_of
from intarsia.op.plain_values import plain_value
from intarsia.op.reference_gaps import REPLACED, reference_gap
from intarsia.op.simulated_quantize_op import SIMULATED_QUANTIZE, simulated_quantize_value
from intarsia.op.token_append_op import APPENDED_TOKENS, token_append_value
from intarsia.op.token_attention_op import ATTENTION_OF_TOKENS, token_attention_value
from intarsia.op.token_filter_op import FILTER_OF_TOKENS, filter_of, token_filter_value
from intarsia.op.token_pool_op import POOL_OF_TOKENS, token_pool_value
from intarsia.op.token_positions_op import COUNTED_POSITIONS, token_positions_value
from intarsia.op.token_window_op import WINDOW_OF_TOKENS, token_window_value, window_of
from intarsia.op.tree_ensemble_op import TREE_ENSEMBLE, tree_ensemble_value
from intarsia.support.errors import ExecutionError, IntarsiaError, UsageError

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator

Array = npt.NDArray[Any]

_IR_VERSION = 13
_CACHED_NODE = 4096
"""Bytes; an evaluator of a larger node (tables in its attributes) is not kept."""


def evaluate_call(call: Call) -> Array | tuple[Array, ...]:
    """The value of a call of an operator all of whose arguments are constants or absent.

    Random operators draw. The arrays are contiguous and read-only, and may share memory with the arguments.

    Returns:
        One array, or a tuple if the call returns one.

    Raises:
        UsageError: The call is not of that kind.
        ExecutionError: The operator has no reference implementation, which failed, or returned something else
            than tensors of the types that are inferred.
    """
    if not can_evaluate(call):
        raise UsageError("only operators applied to constants can be evaluated")
    assert isinstance(call.op, Op)
    values = [arg.data for arg in call.args if isinstance(arg, Constant)]
    type_ = call.checked_type or infer_call_type(call.op, call.args, call.attrs)
    if call.op.domain == INTARSIA_DOMAIN:
        results: list[Any] = [_own_value(call, values)]
    elif call.op.domain not in OPSETS:
        results = _opaque_values(call, values)
    else:
        results = _reference_values(call, values)
    if OUTPUTS not in call.attrs:
        return _as_declared(call.op, results[0], type_)
    types = type_.fields if isinstance(type_, TupleType) else (None,) * len(results)
    return tuple(_as_declared(call.op, value, item) for value, item in zip(results, types, strict=True))


def can_evaluate(call: Call) -> bool:
    """Whether a call is of an operator without a body, and all its arguments are constants or absent."""
    if not isinstance(call.op, Op) or facts_of(call.op).has(OperatorTrait.HAS_BODY):
        return False
    return all(isinstance(arg, Constant) or arg.checked_type == ABSENT for arg in call.args)


def _own_value(call: Call, values: Sequence[Array]) -> Array:
    """The value of one of the operators that ONNX lacks; two of them only say where a value is to be."""
    assert isinstance(call.op, Op)
    if call.op.name == TREE_ENSEMBLE:
        aggregate, count = call.attrs["aggregate"], call.attrs["n_targets"]
        assert isinstance(count, int)
        return tree_ensemble_value(*values, aggregate=str(aggregate), n_targets=count)
    if call.op.name == SIMULATED_QUANTIZE:
        scale, zero = (*values[1:], None, None)[:2]
        axis = call.attrs["axis"]
        assert isinstance(axis, int)
        return simulated_quantize_value(values[0], scale, zero, axis)
    if call.op.name == ATTENTION_OF_TOKENS:
        return _attention_value(call, values)
    if call.op.name == APPENDED_TOKENS:
        return token_append_value(*values)
    if call.op.name == COUNTED_POSITIONS:
        x, like = values
        return token_positions_value(x, like, str(call.attrs["mode"]))
    if call.op.name == FILTER_OF_TOKENS:
        x, taps = values
        return token_filter_value(x, taps, *filter_of(call.attrs))
    if call.op.name == POOL_OF_TOKENS:
        axis, keepdims, mode = (call.attrs[name] for name in ("axis", "keepdims", "mode"))
        assert isinstance(axis, int)
        return token_pool_value(values[0], axis, keepdims == 1, str(mode))
    (value,) = values
    if call.op.name == WINDOW_OF_TOKENS:
        return token_window_value(value, *window_of(call.attrs))
    if call.op.name != "layout_transform":
        return value
    source, destination = str(call.attrs["src_layout"]), str(call.attrs["dst_layout"])
    return value.transpose(layout_permutation(source, destination))


def _attention_value(call: Call, values: Sequence[Array]) -> Array:
    scale, given = call.attrs["scale"], iter(values)
    assert isinstance(scale, float)
    q, k, v, *biases = (None if arg.checked_type == ABSENT else next(given) for arg in call.args)
    assert q is not None
    assert k is not None
    assert v is not None
    clears, replaces = (call.attrs[name] == 1 for name in ("clears", "replaces"))
    anchor = str(call.attrs["anchor"])
    return token_attention_value(
        q, k, v, *biases, replaces=replaces, scale=scale, clears=clears, anchor=anchor
    )


def _reference_values(call: Call, values: list[Array]) -> list[Any]:
    assert isinstance(call.op, Op)
    gap = reference_gap(call) or ("it is computed wrong" if call.op.name in REPLACED else "")
    if gap:
        raise ExecutionError(f"operator {str(call.op)!r} cannot be evaluated by onnx.reference: {gap}")
    try:
        with np.errstate(all="ignore"):  # infinities and NaNs are results like others
            plain = plain_value(call, values) if OUTPUTS not in call.attrs else None
            if plain is not None:
                return [plain]
            evaluator = _evaluator(call)
            feeds = dict(zip(evaluator.input_names, values, strict=True))
            return list(evaluator.run(None, feeds))
    except Exception as error:  # the evaluator raises whatever its operators do
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise ExecutionError(f"operator {str(call.op)!r} cannot be evaluated: {text[:300]}") from error


def _opaque_values(call: Call, values: list[Array]) -> list[Any]:
    """The values of an opaque operator, as the package that declares its domain computes them."""
    assert isinstance(call.op, Op)
    outputs = call.attrs.get(OUTPUTS, 1)
    assert isinstance(outputs, int)
    types = tuple(ABSENT if arg.checked_type == ABSENT else arg.checked_type for arg in call.args)
    node = node_of(call.op, call.args, call.attrs, outputs)
    try:
        return list(operator_domain(call.op.domain).evaluate(node, types, values))  # type: ignore[arg-type]  # constants have types
    except IntarsiaError as error:
        raise ExecutionError(f"operator {str(call.op)!r} cannot be evaluated: {error.problem}") from error


def _evaluator(call: Call) -> ReferenceEvaluator:
    assert isinstance(call.op, Op)
    outputs = call.attrs.get(OUTPUTS, 1)
    assert isinstance(outputs, int)
    node = node_of(call.op, call.args, call.attrs, outputs).SerializeToString(deterministic=True)
    types = tuple(TensorType.of(arg.data) if isinstance(arg, Constant) else None for arg in call.args)
    if len(node) > _CACHED_NODE:
        return _make_evaluator.__wrapped__(node, types)
    return _make_evaluator(node, types)


@lru_cache(maxsize=512)
def _make_evaluator(node: bytes, types: tuple[TensorType | None, ...]) -> ReferenceEvaluator:
    """An evaluator of a model of that node; operators defined by others need the types of its inputs."""
    from onnx import ModelProto
    from onnx.reference import ReferenceEvaluator

    model = ModelProto(ir_version=_IR_VERSION)
    model.graph.node.add().ParseFromString(node)
    operator = model.graph.node[0]
    for domain, version in {**OPSETS, **versions_of([(operator.domain, operator.op_type)])}.items():
        model.opset_import.add(domain=domain, version=version)
    for name, type_ in zip(model.graph.node[0].input, types, strict=True):
        if type_ is not None:
            model.graph.input.add(name=name, type=type_to_proto(type_))
    for name in model.graph.node[0].output:
        model.graph.output.add(name=name)
    return ReferenceEvaluator(model)


def _as_declared(op: Op, value: Any, type_: Type | None) -> Array:
    if isinstance(value, (list, dict)) or value is None or not isinstance(type_, (TensorType, type(None))):
        raise ExecutionError(f"operator {str(op)!r} returned no tensor")
    array = np.asarray(value)
    dtype = DType.of(array) if type_ is None else type_.dtype
    array = np.asarray(array, dtype.numpy, order="C").view()
    if not is_compatible(TensorType.of(array), type_):
        raise ExecutionError(
            f"operator {str(op)!r} returned {TensorType.of(array)}, expected {type_} as inferred"
        )
    array.flags.writeable = False
    return array
