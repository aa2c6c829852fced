"""Range checks of computed indices and lengths, for `-checked=true`: hidden results that bound the indices.

Kernels clamp indices, so that they never read or write outside of a tensor. A checked region computes beside
its results the smallest and the largest index of each operator that gathers or scatters by computed indices,
or has sequences of computed lengths, and the kernel compares them with the allowed range after each run
(`index_check`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from intarsia.ir import (
    ABSENT,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Op,
    TensorType,
    Tuple,
    post_order,
    with_fields,
)
from intarsia.ir.rule_errors import NamedFailure
from intarsia.op import call
from intarsia.op.infer import infer_types
from intarsia.toolchain.native.index_check import IndexCheck


def with_index_checks(function: Function) -> tuple[Function, tuple[IndexCheck, ...]]:
    """Return the function with two hidden results per checked operator behind its own, and the checks.

    Args:
        function: Typed, in graph normal form.
    """
    indexings = []
    for expr in post_order(function.body):
        if isinstance(expr, Call):
            with NamedFailure(expr, "checked"):
                indexing = _indexing(expr)
            if indexing is not None:
                indexings.append((expr, indexing))
    if not indexings:
        return function, ()
    results: list[Expr] = [function.body]
    if isinstance(function.body, Tuple):
        results = list(function.body.fields)
    checks = []
    for operator, indexing in indexings:
        position = len(results)
        results += _bounds(indexing)
        subject = f"{_label(operator)}: {indexing.noun}"
        checks.append(IndexCheck(position, position + 1, subject, indexing.limits, indexing.is_signed))
    changed = with_fields(function, body=Tuple(tuple(results)), checked_type=None)
    typed = infer_types(IRModule({GlobalVar("main"): changed}))["main"]
    assert isinstance(typed, Function)
    return typed, tuple(checks)


@dataclass(frozen=True, slots=True)
class _Indexing:
    """The indices of an operator: coordinates are their last axis, where `limits` has several.

    Attributes:
        indices: Tensor of indices.
        limits: Number of valid indices, counted from 0, of each coordinate.
        is_signed: Whether negative indices count from the end.
        noun: Noun for one of them.
    """

    indices: Expr
    limits: tuple[int, ...]
    is_signed: bool = True
    noun: str = "index"


Rule: TypeAlias = Callable[[Call], _Indexing | None]
"""What a call indexes by computed values; None if it does not."""


def _indexing(operator: Call) -> _Indexing | None:
    """Return what an operator indexes by computed values; None if it does not."""
    rule = _RULES.get(str(operator.op)) if isinstance(operator.op, Op) else None
    indexing = None if rule is None else rule(operator)
    if indexing is None or isinstance(indexing.indices, Constant):  # constants are checked when compiling
        return None
    has_elements = math.prod(_shape(indexing.indices)) > 0
    return indexing if has_elements else None


def _bounds(indexing: _Indexing) -> tuple[Expr, Expr]:
    """The smallest and the largest of each coordinate, (coordinates,) each."""
    rows = np.array([-1, len(indexing.limits)], np.int64)
    matrix = call("Reshape", indexing.indices, Constant(rows))
    axes = Constant(np.array([0], np.int64))
    smallest, largest = (call(name, matrix, axes, keepdims=0) for name in ("ReduceMin", "ReduceMax"))
    return smallest, largest


def _label(operator: Call) -> str:
    name = str(operator.op)
    return f"node {operator.span.node!r} ({name})" if operator.span is not None else f"operator {name!r}"


def _shape(expr: Expr) -> tuple[int, ...]:
    assert isinstance(expr.checked_type, TensorType)
    return expr.checked_type.static_shape


def _has_argument(operator: Call, position: int) -> bool:
    return position < len(operator.args) and operator.args[position].checked_type != ABSENT


def _along_axis(default: int) -> Callable[[Call], _Indexing]:
    """A rule for indices of one axis, which the attribute `axis` names."""

    def rule(operator: Call) -> _Indexing:
        axis = operator.attrs.get("axis", default)
        assert isinstance(axis, int)
        return _Indexing(operator.args[1], (_shape(operator.args[0])[axis],))

    return rule


def _tuples(operator: Call) -> _Indexing | None:
    """GatherND and ScatterND: the last axis of the indices has a coordinate for each axis of the data."""
    batch, indices = operator.attrs.get("batch_dims", 0), operator.args[1]
    assert isinstance(batch, int)
    limits = _shape(operator.args[0])[batch : batch + _shape(indices)[-1]]
    return _Indexing(indices, limits) if limits else None


def _table_rows(operator: Call) -> _Indexing | None:
    """RotaryEmbedding: positions are rows of the tables of cosines and sines."""
    if not _has_argument(operator, 3):
        return None
    return _Indexing(operator.args[3], _shape(operator.args[1])[:1])


def _first_places(operator: Call) -> _Indexing | None:
    """TensorScatter: all updates of a batch must fit behind its first place; circular places always do."""
    if not _has_argument(operator, 2) or operator.attrs.get("mode", "linear") == "circular":
        return None
    axis = operator.attrs.get("axis", -2)
    assert isinstance(axis, int)
    extent, count = (_shape(operator.args[position])[axis] for position in (0, 1))
    return _Indexing(operator.args[2], (extent - count + 1,), is_signed=False)


def _columns(operator: Call) -> _Indexing:
    """ArrayFeatureExtractor: indices of the last axis."""
    return _Indexing(operator.args[1], _shape(operator.args[0])[-1:])


def _lengths_of(position: int, longest: Callable[[Call], int]) -> Rule:
    """A rule for lengths of sequences.

    Args:
        position: Argument with the lengths.
        longest: Returns the largest valid one.
    """

    def rule(operator: Call) -> _Indexing | None:
        if not _has_argument(operator, position):
            return None
        limits = (longest(operator) + 1,)
        return _Indexing(operator.args[position], limits, is_signed=False, noun="length")

    return rule


def _time_steps(operator: Call) -> int:
    axis = operator.attrs.get("time_axis", 0)
    assert isinstance(axis, int)
    return _shape(operator.args[0])[axis]


def _recurrent_steps(layer: Call) -> int:
    return _shape(layer.args[0])[1 if layer.attrs.get("layout") else 0]


def _keys(attention: Call) -> int:
    """Number of keys, past ones included."""
    key = _shape(attention.args[1])
    past = _shape(attention.args[4])[2] if _has_argument(attention, 4) else 0
    return key[2 if len(key) == 4 else 1] + past


_RULES: dict[str, Rule] = {
    "Gather": _along_axis(0),
    "GatherElements": _along_axis(0),
    "GatherND": _tuples,
    "ScatterElements": _along_axis(0),
    "ScatterND": _tuples,
    "RotaryEmbedding": _table_rows,
    "TensorScatter": _first_places,
    "ai.onnx.ml::ArrayFeatureExtractor": _columns,
    "ReverseSequence": _lengths_of(1, _time_steps),
    "Attention": _lengths_of(6, _keys),
    **dict.fromkeys(("RNN", "GRU", "LSTM"), _lengths_of(4, _recurrent_steps)),
}
"""Operators whose kernels clamp computed indices or lengths."""
