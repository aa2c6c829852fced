"""Outputs that NonZero selects: positions, and what is gathered there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from intarsia.ir import Call, Expr, IRModule
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.output_check import OutputCheck
from intarsia.measure.judge.reference_runs import ReferenceRuns
from intarsia.measure.judge.steps.arguments import argument_noise, is_exact, is_real, static_shape
from intarsia.measure.judge.steps.bounds import Bounds, bounds_of, has_step, leaves
from intarsia.measure.judge.steps.movement import is_move, operator_name, outputs_of
from intarsia.measure.judge.steps.selection_check import COLUMNS, FLAT, ROWS, TABLE, SelectionCheck
from intarsia.support.errors import IntarsiaError


@dataclass(frozen=True, slots=True)
class _Selection:
    """An output that a NonZero selects.

    Attributes:
        output: Number of the output.
        call: The NonZero.
        form: Form of the selection: ROWS, COLUMNS, FLAT or TABLE.
        table: Table of gathered values; None for positions.
    """

    output: int
    call: Call
    form: str
    table: Expr | None = None


class SelectionRule:
    """Results of NonZero as outputs, with what GatherND and Gather have at them."""

    def exposed(self, module: IRModule) -> Mapping[str, Expr]:
        """See CheckRule.exposed."""
        values: dict[str, Expr] = {}
        for number, group in enumerate(_groups(module)):
            values |= {key: expr for expr, key in _keys(number, group[0].call).items()}
            tables = {f"selection{number}.table{item.output}": item.table for item in group}
            values |= {key: table for key, table in tables.items() if table is not None}
        return values

    def checks(self, module: IRModule, runs: ReferenceRuns) -> Sequence[OutputCheck]:
        """See CheckRule.checks."""
        found = (_check(number, group, runs) for number, group in enumerate(_groups(module)))
        return [check for check in found if check is not None]


def _groups(module: IRModule) -> list[list[_Selection]]:
    """Outputs by the NonZero that selects them, where engines may select differently."""
    groups: dict[Call, list[_Selection]] = {}
    for number, output in enumerate(outputs_of(module)):
        selection = _selection(number, output)
        if selection is not None:
            groups.setdefault(selection.call, []).append(selection)
    return list(groups.values())


def _selection(number: int, output: Expr) -> _Selection | None:
    selection = _positions(output)
    if selection is not None:
        return _Selection(number, *selection)
    if not isinstance(output, Call) or operator_name(output) not in {"Gather", "GatherND"}:
        return None
    selection = _positions(output.args[1])
    if selection is None:
        return None
    call, form = selection
    shape, table = static_shape(call.args[0]), static_shape(output.args[0])
    if shape is None or table is None or table[: len(shape)] != shape:
        return None
    if operator_name(output) == "GatherND":
        is_plain = form == COLUMNS and output.attrs.get("batch_dims", 0) == 0
    else:
        is_plain = form == FLAT and output.attrs.get("axis", 0) == 0 and _has_one_axis(output.args[1])
    return _Selection(number, call, TABLE, output.args[0]) if is_plain else None


def _positions(expr: Expr) -> tuple[Call, str] | None:
    """The NonZero that an expression has the positions of, and in which form."""
    form = ROWS
    while isinstance(expr, Call) and operator_name(expr) != "NonZero":
        if operator_name(expr) == "Cast" and not is_real(expr) and not is_real(expr.args[0]):
            expr = expr.args[0]
        elif operator_name(expr) == "Transpose" and form == ROWS:
            form, expr = COLUMNS, expr.args[0]
        elif operator_name(expr) in {"Squeeze", "Reshape", "Flatten", "Unsqueeze"} and is_move(expr):
            form, expr = FLAT, expr.args[0]
        else:
            return None
    if not isinstance(expr, Call) or not _may_vary(expr.args[0]):
        return None
    shape = static_shape(expr.args[0])
    if not shape or (form == FLAT and len(shape) != 1):
        return None
    return expr, form


def _may_vary(condition: Expr) -> bool:
    """Whether engines may differ in which elements are zero."""
    return not is_exact(condition) and (is_real(condition) or has_step(condition))


def _has_one_axis(indices: Expr) -> bool:
    type_ = indices.checked_type
    shape = getattr(type_, "shape", None)
    return shape is not None and len(shape) == 1


def _keys(number: int, call: Call) -> dict[Expr, str]:
    """Names of the values that say which elements are zero."""
    condition = call.args[0]
    needed = (condition,) if is_real(condition) else leaves(condition)
    return {expr: f"selection{number}.{i}" for i, expr in enumerate(needed)}


def _check(number: int, group: Sequence[_Selection], runs: ReferenceRuns) -> SelectionCheck | None:
    call = group[0].call
    bounds = _truth(call.args[0], _keys(number, call), runs)
    if bounds is None:
        return None
    tables, allowed = [], []
    for item in group:
        table, limit = _table(f"selection{number}.table{item.output}", item, runs, bounds.low.size)
        if table is None:
            return None
        tables.append(table)
        allowed.append(limit)
    where = tuple(item.output for item in group)
    return SelectionCheck(
        where,
        tuple(runs.names[position] for position in where),
        tuple(runs.outputs[position] for position in where),
        bounds.low,
        bounds.high,
        tuple(item.form for item in group),
        tuple(tables),
        tuple(allowed),
    )


def _truth(condition: Expr, keys: Mapping[Expr, str], runs: ReferenceRuns) -> Bounds | None:
    """Which elements are not zero for certain, and which may be."""
    if is_real(condition):
        key = keys[condition]
        noise, value = argument_noise(runs, key), runs.exposed.get(key)
        spread = runs.exposed_spreads.get(key)
        if noise is None or value is None or spread is None:
            return None
        # What is zero in every run is so by its meaning, as behind a Relu.
        return Bounds(np.abs(value) > noise, (value != 0) | (spread > 0))
    try:
        bounds = bounds_of(condition, keys, runs)
    except IntarsiaError:
        return None
    return None if bounds is None else bounds.mapped(lambda array: array != 0)


def _table(key: str, item: _Selection, runs: ReferenceRuns, size: int) -> tuple[Array | None, float]:
    """What the output has for each element, and how much that may be off; an empty table of positions."""
    if item.table is None:
        return np.zeros((0, 1)), 0.0
    value = runs.exposed.get(key)
    if value is None or not size or value.size % size:
        return None, 0.0
    rows = value.reshape(size, -1)
    if value.dtype.kind in "biu":
        return rows, 0.0
    noise = argument_noise(runs, key)
    return (None, 0.0) if noise is None else (rows, float(noise.max(initial=0)))
