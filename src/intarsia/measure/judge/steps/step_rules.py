"""Which outputs are behind steps, and which values of the program their checks need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, DType, Expr, IRModule, TensorType, TupleGetItem, Var, with_fields
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.output_check import OutputCheck
from intarsia.measure.judge.reference_runs import ReferenceRuns
from intarsia.measure.judge.steps.movement import move, moved_from, operator_name, outputs_of
from intarsia.measure.judge.steps.pick_check import PickCheck
from intarsia.measure.judge.steps.range_check import RangeCheck
from intarsia.op.evaluate import evaluate_call
from intarsia.op.known_value import known_value
from intarsia.support.errors import IntarsiaError

NOISES: Final = 12.0
"""Times the measured noise of an argument that an engine may be off (as for elements: docs/judge.md)."""

_FLOATS: Final = frozenset({DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64})
_MONOTONE: Final = frozenset({"Floor", "Ceil", "Round", "Sign", "Cast"})
_COMPARISONS: Final = frozenset({"Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
_PICKS: Final = frozenset({"TopK", "ArgMax", "ArgMin"})


def _is_real(expr: Expr) -> bool:
    return isinstance(expr.checked_type, TensorType) and expr.checked_type.dtype in _FLOATS


def _is_exact(expr: Expr) -> bool:
    """Whether all engines see the same numbers: an input, or moved parts of it."""
    return isinstance(moved_from(expr)[0], (Var, Constant))


def _noise(runs: ReferenceRuns, key: str) -> Array | None:
    """The noise of each element of an exposed value; None if it is not known."""
    value, spread = runs.exposed.get(key), runs.exposed_spreads.get(key)
    if value is None or spread is None or not np.isfinite(value).all() or not np.isfinite(spread).all():
        return None
    size = float(np.sqrt(np.mean(np.square(value, dtype=np.float64)))) if value.size else 0.0
    usual = max(float(np.sqrt(np.mean(np.square(spread, dtype=np.float64)))), 8 * 2.0**-23 * size)
    return NOISES * np.maximum(spread.astype(np.float64), usual)


class RangeRule:
    """Steps of single elements: Floor, Ceil, Round, Sign, conversions to integers, comparisons."""

    def exposed(self, module: IRModule) -> Mapping[str, Expr]:
        """See CheckRule.exposed."""
        steps = (moved_from(output)[0] for output in outputs_of(module))
        found = enumerate(map(_step_arguments, steps))
        return {f"step{number}.{i}": arg for number, args in found for i, arg in enumerate(args)}

    def checks(self, module: IRModule, runs: ReferenceRuns) -> Sequence[OutputCheck]:
        """See CheckRule.checks."""
        checks: list[OutputCheck] = []
        for number, output in enumerate(outputs_of(module)):
            step, moves = moved_from(output)
            args = _step_arguments(step)
            if not args or not isinstance(step, Call):
                continue
            keys = [f"step{number}.{i}" for i in range(len(args))]
            noises = [_noise(runs, key) for key in keys]
            if any(noise is None for noise in noises):
                continue
            values = [(runs.exposed[key], noise) for key, noise in zip(keys, noises, strict=True)]
            try:
                low, high = (
                    move(_stepped(step, values, sign), moves).astype(runs.outputs[number].dtype)
                    for sign in (-1, 1)
                )
            except IntarsiaError:
                continue
            expected = runs.outputs[number]
            low, high = np.minimum(low, expected), np.maximum(high, expected)
            checks.append(RangeCheck(number, runs.names[number], expected, low, high))
        return checks


def _step_arguments(step: Expr) -> tuple[Expr, ...]:
    """The real arguments of a step that are computed; none if it is no step, or all see the same numbers."""
    name = operator_name(step)
    if not isinstance(step, Call) or name not in _MONOTONE | _COMPARISONS or not _is_real(step.args[0]):
        return ()
    if (name == "Cast" and _is_real(step)) or all(map(_is_exact, step.args)):
        return ()
    return step.args


def _stepped(step: Call, values: Sequence[tuple[Array, Array | None]], sign: int) -> Array:
    """The smallest (sign -1) or largest (sign 1) result within noise of the arguments."""
    signs = (sign, -sign) if operator_name(step) in _COMPARISONS else (sign,)
    if operator_name(step).startswith("Less"):
        signs = (-sign, sign)
    args = [
        Constant((value + way * (0.0 if noise is None else noise)).astype(value.dtype))
        for (value, noise), way in zip(values, signs, strict=True)
    ]
    result = evaluate_call(with_fields(step, args=tuple(args), checked_type=None))
    assert not isinstance(result, tuple)
    return result


@dataclass(frozen=True, slots=True)
class _Pick:
    """An output that indices of an operator select.

    Attributes:
        output: Number of the output.
        call: The TopK, ArgMax or ArgMin.
        table: What is selected: "index", "score", or what a Gather reads.
    """

    output: int
    call: Call
    table: Expr | str


class PickRule:
    """Indices of TopK, ArgMax and ArgMin as outputs, with what is gathered by them."""

    def exposed(self, module: IRModule) -> Mapping[str, Expr]:
        """See CheckRule.exposed."""
        values: dict[str, Expr] = {}
        for number, picks in enumerate(_groups(module)):
            values[f"pick{number}"] = picks[0].call.args[0]
            tables = {f"pick{number}.{pick.output}": pick.table for pick in picks}
            values |= {key: table for key, table in tables.items() if isinstance(table, Expr)}
        return values

    def checks(self, module: IRModule, runs: ReferenceRuns) -> Sequence[OutputCheck]:
        """See CheckRule.checks."""
        found = (_pick_check(number, picks, runs) for number, picks in enumerate(_groups(module)))
        return [check for check in found if check is not None]


def _groups(module: IRModule) -> Iterator[list[_Pick]]:
    """Outputs by the operator that selects them, where one of them is not judged by its numbers."""
    groups: dict[Call, list[_Pick]] = {}
    for number, output in enumerate(outputs_of(module)):
        pick = _pick(number, output)
        if pick is not None and not _is_exact(pick.call.args[0]) and _is_real(pick.call.args[0]):
            groups.setdefault(pick.call, []).append(pick)
    yield from (picks for picks in groups.values() if any(pick.table != "score" for pick in picks))


def _pick(number: int, output: Expr) -> _Pick | None:
    """How an output is selected; None if it is not."""
    output = _unmoved(output)
    source = _index_source(output)
    if source is not None:
        return _Pick(number, source, "index")
    match output:
        case TupleGetItem(tuple_value=Call() as call, index=0) if operator_name(call) == "TopK":
            return _Pick(number, call, "score") if _is_last_axis(call) else None
        case Call(args=(table, indices)) if operator_name(output) == "Gather":
            source = _index_source(_unmoved(indices))
            axis = output.attrs.get("axis", 0)
            if (
                source is not None
                and isinstance(axis, int)
                and axis in (0, 1)
                and _rows(source) == 1
                and _leads_with(table, axis)
            ):
                return _Pick(number, source, table)
    return None


def _unmoved(expr: Expr) -> Expr:
    """The value before it was reshaped or its integer type changed: its elements are in the same order."""
    reshaping = ("Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten")
    while isinstance(expr, Call) and (
        operator_name(expr) in reshaping
        or (operator_name(expr) == "Cast" and not _is_real(expr.args[0]) and not _is_real(expr))
    ):
        expr = expr.args[0]
    return expr


def _index_source(expr: Expr) -> Call | None:
    """The operator whose indices an expression is."""
    if isinstance(expr, TupleGetItem) and expr.index == 1 and operator_name(expr.tuple_value) == "TopK":
        call = expr.tuple_value
    else:
        call = expr
    is_pick = (
        isinstance(call, Call)
        and operator_name(call) in _PICKS
        and (call is expr) == (operator_name(call) != "TopK")
    )
    return call if is_pick and isinstance(call, Call) and (call is expr or _is_last_axis(call)) else None


def _shape(expr: Expr) -> tuple[int, ...] | None:
    type_ = expr.checked_type
    return type_.static_shape if isinstance(type_, TensorType) and type_.is_static else None


def _is_last_axis(call: Call) -> bool:
    shape = _shape(call.args[0])
    axis = call.attrs.get("axis", -1 if operator_name(call) == "TopK" else 0)
    is_sorted = call.attrs.get("sorted", 1) == 1
    return shape is not None and bool(shape) and axis in (-1, len(shape) - 1) and is_sorted


def _rows(call: Call) -> int:
    """How many selections a call makes; 0 if that is not known."""
    shape = _shape(call.args[0])
    return int(np.prod(shape[:-1])) if shape and _is_last_axis(call) else 0


def _leads_with(table: Expr, axis: int) -> bool:
    """Whether a table has nothing before the axis of its rows."""
    shape = _shape(table)
    return shape is not None and len(shape) > axis and all(size == 1 for size in shape[:axis])


def _pick_check(number: int, picks: Sequence[_Pick], runs: ReferenceRuns) -> PickCheck | None:
    key, call = f"pick{number}", picks[0].call
    noise = _noise(runs, key)
    count = _count(call)
    if noise is None or count is None:
        return None
    value = runs.exposed[key]
    axis = call.attrs.get("axis", -1 if operator_name(call) == "TopK" else 0)
    assert isinstance(axis, int)
    # A selection of one element each has its results in the order of the other axes, keepdims or not.
    moved = np.moveaxis(value, axis, -1)
    scores = moved.reshape(-1, moved.shape[-1]).astype(np.float64)
    tables, allowed = [], []
    for pick in picks:
        table, limit = _table(f"{key}.{pick.output}", pick, runs, scores, float(noise.max(initial=0)))
        if table is None:
            return None
        tables.append(table)
        allowed.append(limit)
    where = tuple(pick.output for pick in picks)
    is_largest = call.attrs.get("largest", 1) == 1 and operator_name(call) != "ArgMin"
    names, expected = tuple(runs.names[i] for i in where), tuple(runs.outputs[i] for i in where)
    sizes = [len(scores) * count * int(np.prod(table.shape[2:])) for table in tables]
    if any(array.size != size for array, size in zip(expected, sizes, strict=True)):
        return None
    delta = float(noise.max(initial=0))
    return PickCheck(where, names, expected, scores, delta, count, is_largest, tuple(tables), tuple(allowed))


def _count(call: Call) -> int | None:
    if operator_name(call) != "TopK":
        return 1
    number = known_value(call.args[1])
    return None if number is None else int(number.reshape(-1)[0])


def _table(
    key: str, pick: _Pick, runs: ReferenceRuns, scores: Array, delta: float
) -> tuple[Array | None, float]:
    """What the output has for each element, and how much that may be off."""
    if pick.table == "index":
        return np.broadcast_to(np.arange(scores.shape[1]), scores.shape).copy(), 0.0
    if pick.table == "score":
        return scores, delta
    value = runs.exposed.get(key)
    if value is None:
        return None, 0.0
    table = value.reshape(1, scores.shape[1], -1) if value.size % scores.shape[1] == 0 else None
    if value.dtype.kind in "biu":
        return table, 0.0
    noise = _noise(runs, key)
    return (None, 0.0) if noise is None else (table, float(noise.max(initial=0)))
