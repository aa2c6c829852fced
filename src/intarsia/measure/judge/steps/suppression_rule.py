"""Outputs that NonMaxSuppression selects: its rows, and what is gathered for each of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, TypeGuard

import numpy as np

from intarsia.ir import ABSENT, Call, Constant, Expr, IRModule, TupleGetItem, post_order
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.output_check import OutputCheck
from intarsia.measure.judge.reference_runs import ReferenceRuns
from intarsia.measure.judge.steps.arguments import NOISES, argument_noise, is_exact, is_real, static_shape
from intarsia.measure.judge.steps.movement import operator_name, outputs_of
from intarsia.measure.judge.steps.row_axis import row_axis
from intarsia.measure.judge.steps.suppression_check import SuppressionCheck, selected_rows
from intarsia.op.known_value import known_value
from intarsia.op.rewrite_typed import rewrite_typed
from intarsia.support.errors import IntarsiaError

_MOST, _THRESHOLD, _LEAST = 2, 3, 4
_MOST_CANDIDATES: Final = 1 << 20
"""Boxes of all classes and batches; what would be gathered for each of more takes too long to compute."""


class SuppressionRule:
    """Selected boxes and what is gathered for them, judged by scores and overlaps.

    What is gathered is known for each box that could be selected, from the program with all of them in the
    place of the selected ones.
    """

    def exposed(self, module: IRModule) -> Mapping[str, Expr]:
        """See CheckRule.exposed."""
        values: dict[str, Expr] = {}
        for number, group in enumerate(_groups(module)):
            values |= {f"suppression{number}.{name}": expr for name, expr in group.values().items()}
        return values

    def checks(self, module: IRModule, runs: ReferenceRuns) -> Sequence[OutputCheck]:
        """See CheckRule.checks."""
        checks = (_check(f"suppression{number}", group, runs) for number, group in enumerate(_groups(module)))
        return [check for check in checks if check is not None]


@dataclass(frozen=True, slots=True)
class _Group:
    """Outputs of which each row is that of one selected box.

    Attributes:
        call: The NonMaxSuppression.
        outputs: Numbers of the outputs, each with its expression and the axis of its rows.
        best: TopK that selects the boxes; None without one.
    """

    call: Call
    outputs: Mapping[int, tuple[Expr, int]]
    best: Call | None

    def values(self) -> dict[str, Expr]:
        """What a check needs, by name, with a table of each output that is not just the rows selected."""
        boxes, scores = self.call.args[:2]
        values: dict[str, Expr] = {"selected": self.call}
        values |= {"boxes": self._unranked(boxes), "scores": self._unranked(scores)}
        if self.best is not None:
            values["rank"] = TupleGetItem(self.best, 1)
        rows = _all_rows(values["scores"])
        for number, (output, _) in self.outputs.items():
            if output is not self.call and rows is not None:
                with contextlib.suppress(IntarsiaError):  # shapes that other numbers of rows do not fit
                    values[f"table{number}"] = self._unranked(_replaced(output, {self.call: rows}))
        return values

    def _unranked(self, expr: Expr) -> Expr:
        """The expression with all elements in the place of the best."""
        if self.best is None:
            return expr
        scores, shape = self.best.args[0], static_shape(self.best.args[0])
        assert shape is not None
        places = Constant(np.arange(prod(shape)).reshape(shape))
        items = [node for node in post_order(expr) if _is_item_of(node, self.best)]
        return _replaced(expr, {item: scores if item.index == 0 else places for item in items})


def _is_item_of(node: Expr, value: Expr) -> TypeGuard[TupleGetItem]:
    return isinstance(node, TupleGetItem) and node.tuple_value is value


def _replaced(expr: Expr, replacements: Mapping[Expr, Expr]) -> Expr:
    """The expression with others in the place of some, of which none is below another.

    Raises:
        IntarsiaError: An operator cannot be applied to what it is given.
    """
    return rewrite_typed(expr, lambda node: replacements.get(node, node))


def _groups(module: IRModule) -> list[_Group]:
    """Outputs by the NonMaxSuppression that selects them."""
    outputs = outputs_of(module)
    calls = [node for node in post_order(*outputs) if isinstance(node, Call) and _has_known_limits(node)]
    groups: list[_Group] = []
    for call in calls:
        axes = {number: row_axis(output, call) for number, output in enumerate(outputs)}
        rows = {number: (outputs[number], axis) for number, axis in axes.items() if axis is not None}
        if rows:
            groups.append(_Group(call, rows, _best(call)))
    return groups


def _best(call: Call) -> Call | None:
    """Return the TopK of one row that selects the boxes of a suppression, in its order; None without one."""
    boxes, scores = call.args[:2]
    calls = {node for node in post_order(boxes, scores) if operator_name(node) == "TopK"}
    best = calls.pop() if len(calls) == 1 else None
    shape = static_shape(scores)
    if not isinstance(best, Call) or shape is None or shape[:2] != (1, 1):
        return None
    ranked, axis = static_shape(best.args[0]), best.attrs.get("axis", -1)
    if not ranked or not isinstance(axis, int) or ranked[axis] != prod(ranked):
        return None
    if not is_real(best.args[0]) or best.attrs.get("largest", 1) != 1:
        return None
    axis %= len(ranked)
    return best if (row_axis(boxes, best, axis), row_axis(scores, best, axis)) == (1, 2) else None


def _all_rows(scores: Expr) -> Constant | None:
    """Rows of batch, class and box of all boxes; None if there are too many, or an unknown number."""
    shape = static_shape(scores)
    if shape is None or prod(shape) > _MOST_CANDIDATES:
        return None
    return Constant(np.stack(np.unravel_index(np.arange(prod(shape)), shape), axis=1).astype(np.int64))


def _has_known_limits(call: Call) -> bool:
    """Return whether a call is a suppression with known limits."""
    return operator_name(call) == "NonMaxSuppression" and all(
        _limit(call, position) is not None
        for position in range(2, len(call.args))
        if _is_given(call, position)
    )


def _is_given(call: Call, position: int) -> bool:
    return position < len(call.args) and call.args[position].checked_type != ABSENT


def _limit(call: Call, position: int) -> float | None:
    """The value of a limit; None if it is absent or not known."""
    value = known_value(call.args[position]) if _is_given(call, position) else None
    return None if value is None or value.size != 1 else float(value.reshape(-1)[0])


def _check(key: str, group: _Group, runs: ReferenceRuns) -> SuppressionCheck | None:
    call = group.call
    limits = [_noise(expr, f"{key}.{name}", runs) for expr, name in zip(call.args, _ARGUMENTS, strict=False)]
    boxes, scores, selected = (runs.exposed.get(f"{key}.{name}") for name in (*_ARGUMENTS, "selected"))
    if boxes is None or scores is None or selected is None or limits[0] is None or limits[1] is None:
        return None
    flat = _flat(key, group, runs, selected, scores.shape)
    tables = {number: table for number, *table in _tables(key, group, runs, flat)}
    if not tables:
        return None
    where = tuple(tables)
    index = next((i for i, number in enumerate(where) if group.outputs[number][0] is call), None)
    return SuppressionCheck(
        where=where,
        names=tuple(runs.names[number] for number in where),
        expected=tuple(runs.outputs[number] for number in where),
        axes=tuple(group.outputs[number][1] for number in where),
        index=index,
        tables=tuple(table for table, _ in tables.values()),
        allowed=tuple(allowed for _, allowed in tables.values()),
        selected=flat,
        boxes=boxes,
        scores=scores,
        most=int(np.minimum(_limit(call, _MOST) or 0, scores.shape[-1])),
        threshold=_limit(call, _THRESHOLD) or 0.0,
        least=_limit(call, _LEAST),
        cut=_cut(group, scores),
        is_centered=bool(call.attrs.get("center_point_box", 0)),
        delta=limits[1],
        noise=limits[0],
    )


_ARGUMENTS: Final = ("boxes", "scores")


def _noise(expr: Expr, key: str, runs: ReferenceRuns) -> float | None:
    noise = argument_noise(runs, key)
    if is_exact(expr) and key in runs.exposed:
        return 0.0
    return None if noise is None else float(noise.max(initial=0))


def _cut(group: _Group, scores: Array) -> float | None:
    """The score of the last box that takes part; None if all do."""
    if group.best is None:
        return None
    shape = static_shape(group.call.args[1])
    assert shape is not None
    return float(np.sort(scores.reshape(-1))[-shape[-1]])


def _flat(key: str, group: _Group, runs: ReferenceRuns, selected: Array, shape: tuple[int, ...]) -> Array:
    """Which of all boxes the reference selected, as positions in the flattened scores."""
    batch, label, box = selected.T
    if group.best is not None:
        box = runs.exposed[f"{key}.rank"].reshape(-1)[box]
    return np.asarray(np.ravel_multi_index((batch, label, box), shape), np.int64)


def _tables(
    key: str, group: _Group, runs: ReferenceRuns, selected: Array
) -> Iterator[tuple[int, Array, Array]]:
    """Each output that can be judged, with its rows of all boxes and how far columns may be off."""
    for number, (output, axis) in group.outputs.items():
        expected = selected_rows(runs.outputs[number], axis)
        if output is group.call:
            if group.best is None:
                yield number, np.zeros((0, expected.shape[1]), np.int64), np.zeros(expected.shape[1])
            continue
        name = f"{key}.table{number}"
        value, spread = runs.exposed.get(name), runs.exposed_spreads.get(name)
        if value is None or spread is None or not np.isfinite(spread).all():
            continue
        table = selected_rows(value, axis)
        allowed = _column_noise(table, selected_rows(spread, axis))
        # The reference has the rows of its own table, or the table says nothing of the output.
        is_alike = table.shape[1:] == expected.shape[1:] and len(expected) == len(selected)
        if is_alike and len(table) == runs.exposed[f"{key}.scores"].size:
            off = np.abs(table[selected].astype(np.float64) - expected.astype(np.float64))
            if (off <= allowed).all():
                yield number, table, allowed


def _column_noise(table: Array, spread: Array) -> Array:
    """How far an engine may be off in each column of a table."""
    if table.dtype.kind in "biu":
        return np.zeros(table.shape[1])
    wide = table.astype(np.float64)
    size, usual = (np.sqrt(np.mean(array * array, axis=0)) for array in (wide, spread.astype(np.float64)))
    return np.asarray(NOISES * np.maximum(np.maximum(spread.max(axis=0), usual), 8 * 2.0**-23 * size))
