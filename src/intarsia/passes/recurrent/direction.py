"""One direction of a recurrent layer, before it is said how its steps are repeated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from intarsia.ir import Call, Constant, Expr, TensorType, with_fields
from intarsia.op import call
from intarsia.passes.recurrent.cells import Cell, States
from intarsia.passes.recurrent.form import ARGUMENTS, RecurrentForm, is_given
from intarsia.passes.recurrent.slicing import numbers, part, row, transposed


@dataclass(frozen=True, slots=True)
class Direction:
    """What the steps of one direction need.

    Attributes:
        cell: The step.
        is_backward: Whether the last step comes first.
        inputs: Products of all inputs with their weights, biases added, (steps, batch, gates * width).
        mask: Whether a step is within the length of its sequence, (steps, batch, 1); None where all are.
        initial: The states before the first step, (1, batch, width) each; None where they are zero.
    """

    cell: Cell
    is_backward: bool
    inputs: Expr
    mask: Expr | None
    initial: States


def directions_of(layer: Call, form: RecurrentForm) -> list[Direction]:
    """Return the directions of a layer; they share the mask of its sequences."""
    values = dict(zip(ARGUMENTS, layer.args, strict=False))
    x = values["x"]
    if form.is_batch_first:
        x = call("Transpose", x, perm=(1, 0, 2))
    mask = _mask(x, values["sequence_lens"], form) if is_given(layer, "sequence_lens") else None
    return [
        _direction(layer, form, values, x, mask, at, backward) for at, backward in enumerate(form.directions)
    ]


def zero_state(form: RecurrentForm, x: Expr) -> Expr:
    """Return a state of zeros, (1, batch, width).

    Args:
        form: The layer.
        x: Its inputs or something of the same first axes: steps, batch.
    """
    dtype = form.x.dtype.numpy
    if form.batch is not None:
        return Constant(np.zeros((1, form.batch, form.width), dtype))
    batch = call("Shape", x, start=1, end=2)
    shape = call("Concat", numbers(1), batch, numbers(form.width), axis=0)
    zeros = call("Expand", Constant(np.zeros((1, 1, 1), dtype)), shape)
    # Rules of types do not follow sizes through Concat; the steps of a Scan need the name of the batch.
    type_ = TensorType((1, form.sizes[1 - form.time_axis], form.width), form.x.dtype)
    return with_fields(zeros, checked_type=type_)


def _direction(
    layer: Call,
    form: RecurrentForm,
    values: dict[str, Expr],
    x: Expr,
    mask: Expr | None,
    at: int,
    backward: bool,
) -> Direction:
    width = form.width
    inputs = call("MatMul", x, transposed(row(values["w"], at)))
    hidden_bias = None
    if is_given(layer, "b"):
        bias = row(values["b"], at)
        half = form.gates * width
        weights_bias, recurrence_bias = part(bias, 0, half, 0), part(bias, half, 2 * half, 0)
        if form.operator == "GRU" and form.linear_before_reset:
            hidden_bias = part(recurrence_bias, 2 * width, 3 * width, 0)
            zeros = Constant(np.zeros(width, form.x.dtype.numpy))
            recurrence_bias = call("Concat", part(recurrence_bias, 0, 2 * width, 0), zeros, axis=0)
        inputs = call("Add", inputs, call("Add", weights_bias, recurrence_bias))
    peepholes: tuple[Expr, ...] = ()
    if is_given(layer, "p"):
        weights = row(values["p"], at)
        peepholes = tuple(part(weights, gate * width, (gate + 1) * width, 0) for gate in range(3))
    recurrent = _recurrent(form, row(values["r"], at))
    cell = Cell(form, form.activations[at], recurrent, hidden_bias, peepholes)
    return Direction(cell, backward, inputs, mask, _initial(layer, form, values, at))


def _recurrent(form: RecurrentForm, weights: Expr) -> tuple[Expr, ...]:
    """Return the matrices of `Cell.recurrent`, of which all steps read the same expressions."""
    if form.operator != "GRU" or form.linear_before_reset:
        return (transposed(weights),)
    split = 2 * form.width
    return transposed(part(weights, 0, split, 0)), transposed(part(weights, split, 3 * form.width, 0))


def _initial(layer: Call, form: RecurrentForm, values: dict[str, Expr], at: int) -> States:
    names = ("initial_h", "initial_c") if form.operator == "LSTM" else ("initial_h",)
    states: list[Expr | None] = []
    for name in names:
        value = values[name] if is_given(layer, name) else None
        if value is not None and form.is_batch_first:
            value = call("Transpose", value, perm=(1, 0, 2))
        states.append(None if value is None else part(value, at, at + 1, 0))
    return tuple(states)


def _mask(x: Expr, lengths: Expr, form: RecurrentForm) -> Expr | None:
    """Whether step t is below the length of sequence b, (steps, batch, 1); None if all always are."""
    if form.steps is not None:
        if isinstance(lengths, Constant) and bool((lengths.data >= form.steps).all()):
            return None
        steps: Expr = Constant(np.arange(form.steps, dtype=np.int32).reshape(-1, 1, 1))
    else:
        count = call("Squeeze", call("Shape", x, start=0, end=1), numbers(0))
        bounds = (Constant(np.array(0, np.int64)), count, Constant(np.array(1, np.int64)))
        steps = call("Unsqueeze", call("Cast", call("Range", *bounds), to=6), numbers(1, 2))
    if isinstance(lengths, Constant) and isinstance(steps, Constant):
        return Constant(steps.data < lengths.data.reshape(1, -1, 1))
    return call("Less", steps, call("Unsqueeze", lengths, numbers(0, 2)))
