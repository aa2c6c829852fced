"""Outputs that the indices of a TopK, ArgMax or ArgMin select."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import ANY, Call, Dim, Expr, IRModule, TensorType, TupleGetItem
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.output_check import OutputCheck
from intarsia.measure.judge.reference_runs import ReferenceRuns
from intarsia.measure.judge.steps.arguments import argument_noise, is_exact, is_real, static_shape
from intarsia.measure.judge.steps.movement import operator_name, outputs_of
from intarsia.measure.judge.steps.pick_check import PickCheck
from intarsia.op.known_value import known_value

_PICKS: Final = frozenset({"TopK", "ArgMax", "ArgMin"})


@dataclass(frozen=True, slots=True)
class _Pick:
    """An output that indices of an operator select.

    Attributes:
        output: Number of the output.
        call: The TopK, ArgMax or ArgMin.
        table: Selected values: "index", "score", or the table of a Gather.
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
        if pick is not None and _may_vary(pick.call):
            groups.setdefault(pick.call, []).append(pick)
    yield from (
        picks
        for call, picks in groups.items()
        if any(pick.table != "score" for pick in picks) or not _is_sorted(call)
    )


def _may_vary(call: Call) -> bool:
    """Whether engines may select differently, or in another order."""
    return not _is_sorted(call) or (is_real(call.args[0]) and not is_exact(call.args[0]))


def _pick(number: int, output: Expr) -> _Pick | None:
    """How an output is selected; None if it is not."""
    output = _unmoved(output)
    source = _index_source(output)
    if source is not None:
        return _Pick(number, source, "index")
    match output:
        case TupleGetItem(tuple_value=Call() as call, index=0) if operator_name(call) == "TopK":
            return _Pick(number, call, "score")
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
        case Call(args=(table, indices)) if operator_name(output) in {"GatherElements", "GatherND"}:
            source = _index_source(_unmoved(_not_repeated(indices)))
            if source is not None and _selects_rows(output, source):
                return _Pick(number, source, table)
    return None


def _not_repeated(indices: Expr) -> Expr:
    """The indices before they were repeated along a last axis of size 1."""
    while operator_name(indices) in {"Expand", "Tile"}:
        assert isinstance(indices, Call)
        if not _repeats_last_axis(indices):
            break
        indices = indices.args[0]
    return indices


def _repeats_last_axis(call: Call) -> bool:
    """Whether an Expand or Tile repeats a last axis of size 1 and nothing else.

    Sizes may be unknown, as behind a TopK with k as an input; then a constant argument must have ones there.
    """
    shape, repeated = _dims(call.args[0]), _dims(call)
    if not shape or shape[-1] != 1 or repeated is None or len(repeated) != len(shape):
        return False
    if repeated[:-1] == shape[:-1] and ANY not in shape:
        return True
    times = known_value(call.args[1])
    return times is not None and bool((times.reshape(-1)[:-1] == 1).all())


def _selects_rows(output: Call, source: Call) -> bool:
    """Whether a GatherElements or GatherND has, for each index of the source, one row of its table."""
    scores, table = static_shape(source.args[0]), static_shape(output.args[0])
    indices, layout = _dims(output.args[1]), _layout(source, scores)
    if not scores or not table or not indices or layout is None or operator_name(source) != "TopK":
        return False
    axis = layout.axis
    # Axes behind that of the selection come before the row of a table, unless they have one element.
    lead = len(scores) if layout.inner > 1 else axis + 1
    if table[:lead] != scores[:lead]:
        return False
    if operator_name(output) == "GatherND":
        # One index for each row of each batch.
        is_plain = axis == len(scores) - 1 and len(indices) == len(scores) + 1 and indices[-1] == 1
        return is_plain and output.attrs.get("batch_dims", 0) == axis
    given = output.attrs.get("axis", 0)
    is_along = isinstance(given, int) and given % len(table) == axis and len(indices) == len(table)
    # TopK changes the size of its axis only. So sizes of the scores' other axes may be unknown, as they are
    # where k is computed, unless the indices were reshaped.
    unknown = 0 if _is_reshaped(output.args[1]) else lead
    return is_along and all(
        size == wanted or number == axis or (number < unknown and not isinstance(size, int))
        for number, (size, wanted) in enumerate(zip(indices, table, strict=True))
    )


def _is_reshaped(indices: Expr) -> bool:
    """Whether indices were reshaped after an operator had selected them."""
    while isinstance(indices, Call) and operator_name(indices) not in _PICKS:
        if operator_name(indices) in {"Reshape", "Flatten"}:
            return True
        indices = indices.args[0]
    return False


def _dims(expr: Expr) -> tuple[Dim, ...] | None:
    """The sizes of a value, of which some may be unknown; None if its rank is unknown."""
    type_ = expr.checked_type
    return type_.shape if isinstance(type_, TensorType) else None


def _unmoved(expr: Expr) -> Expr:
    """The value before it was reshaped or its integer type changed: its elements are in the same order."""
    reshaping = ("Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten")
    while isinstance(expr, Call) and (
        operator_name(expr) in reshaping
        or (operator_name(expr) == "Cast" and not is_real(expr.args[0]) and not is_real(expr))
    ):
        expr = expr.args[0]
    return expr


def _index_source(expr: Expr) -> Call | None:
    """Return the operator that computes an expression as its indices, or None."""
    if isinstance(expr, TupleGetItem) and expr.index == 1 and operator_name(expr.tuple_value) == "TopK":
        call = expr.tuple_value
    else:
        call = expr
    is_pick = (
        isinstance(call, Call)
        and operator_name(call) in _PICKS
        and (call is expr) == (operator_name(call) != "TopK")
    )
    return call if is_pick and isinstance(call, Call) else None


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the axis of a selection lies among those of the scores.

    Attributes:
        axis: The axis.
        outer: Product of the sizes of the axes before it.
        size: Its size.
        inner: Product of the sizes of the axes behind it.
    """

    axis: int
    outer: int
    size: int
    inner: int

    def by_rows(self, values: Array) -> Array:
        """Values by elements of the scores, as (rows, elements, ...), rows by the axes before and behind."""
        split = values.reshape(self.outer, self.size, self.inner, -1)
        return np.moveaxis(split, 1, 2).reshape(self.outer * self.inner, self.size, -1)


def _layout(call: Call, shape: tuple[int, ...] | None) -> _Layout | None:
    """The layout of a selection; None of scores without elements or of unknown shape.

    Args:
        call: The TopK, ArgMax or ArgMin.
        shape: The shape of its scores.
    """
    axis = call.attrs.get("axis", -1 if operator_name(call) == "TopK" else 0)
    if not shape or 0 in shape or not isinstance(axis, int):
        return None
    axis %= len(shape)
    return _Layout(axis, prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))


def _is_sorted(call: Call) -> bool:
    """Whether what a call selects has an order."""
    return call.attrs.get("sorted", 1) == 1


def _rows(call: Call) -> int:
    """How many selections a call makes; 0 if that is not known."""
    layout = _layout(call, static_shape(call.args[0]))
    return 0 if layout is None else layout.outer * layout.inner


def _leads_with(table: Expr, axis: int) -> bool:
    """Whether a table has nothing before the axis of its rows."""
    shape = static_shape(table)
    return shape is not None and len(shape) > axis and all(size == 1 for size in shape[:axis])


def _pick_check(number: int, picks: Sequence[_Pick], runs: ReferenceRuns) -> PickCheck | None:
    key, call = f"pick{number}", picks[0].call
    delta = _score_noise(call, key, runs)
    layout = _layout(call, runs.exposed[key].shape) if key in runs.exposed else None
    if delta is None or layout is None:
        return None
    scores = layout.by_rows(runs.exposed[key])[:, :, 0].astype(np.float64)
    tables, allowed = [], []
    for pick in picks:
        table, limit = _table(f"{key}.{pick.output}", pick, runs, scores, layout, delta)
        if table is None:
            return None
        tables.append(table)
        allowed.append(limit)
    where = tuple(pick.output for pick in picks)
    is_largest = call.attrs.get("largest", 1) == 1 and operator_name(call) != "ArgMin"
    names, expected = tuple(runs.names[i] for i in where), tuple(runs.outputs[i] for i in where)
    count = _count(call, expected, tables)
    if count is None:
        return None
    return PickCheck(
        where,
        names,
        expected,
        scores,
        delta,
        count,
        is_largest,
        tuple(tables),
        tuple(allowed),
        inner=layout.inner,
        is_sorted=_is_sorted(call),
        index=next((i for i, pick in enumerate(picks) if pick.table == "index"), None),
    )


def _score_noise(call: Call, key: str, runs: ReferenceRuns) -> float | None:
    """How far an engine may be off in a score; None if that is not known."""
    scores = call.args[0]
    if is_exact(scores):
        return 0.0
    if not is_real(scores):
        # Integers behind a step are off by one where a run differs.
        spread = runs.exposed_spreads.get(key)
        return None if spread is None else float(spread.any())
    noise = argument_noise(runs, key)
    return None if noise is None else float(noise.max(initial=0))


def _count(call: Call, expected: Sequence[Array], tables: Sequence[Array]) -> int | None:
    """How many elements each row selects; None if results are not of as many.

    The k of a TopK may be an input or computed: results have as many elements of each row of their table.

    Args:
        call: The TopK, ArgMax or ArgMin.
        expected: Reference results of the outputs.
        tables: Values of each output for each element of the scores, of shape (rows, elements, ...).
    """
    sizes = [len(table) * prod(table.shape[2:]) for table in tables]
    number = known_value(call.args[1]) if operator_name(call) == "TopK" else np.ones(1, np.int64)
    count = expected[0].size // max(1, sizes[0]) if number is None else int(number.reshape(-1)[0])
    is_whole = all(array.size == count * size for array, size in zip(expected, sizes, strict=True))
    return count if is_whole and count > 0 else None


def _table(
    key: str, pick: _Pick, runs: ReferenceRuns, scores: Array, layout: _Layout, delta: float
) -> tuple[Array | None, float]:
    """What the output has for each element, and how much that may be off."""
    if pick.table == "index":
        return np.broadcast_to(np.arange(scores.shape[1]), scores.shape).copy(), 0.0
    if pick.table == "score":
        return scores, delta
    value = runs.exposed.get(key)
    if value is None:
        return None, 0.0
    table = layout.by_rows(value) if value.size and value.size % scores.size == 0 else None
    if value.dtype.kind in "biu":
        return table, 0.0
    noise = argument_noise(runs, key)
    return (None, 0.0) if noise is None else (table, float(noise.max(initial=0)))
