"""The steps of a direction: written one after another, or as the body of a Scan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.ir import Call, Constant, Expr, Function, TensorType, Tuple, Var
from intarsia.op import call, tuple_get
from intarsia.op.node import OUTPUTS
from intarsia.passes.recurrent.cells import States
from intarsia.passes.recurrent.direction import Direction, zero_state
from intarsia.passes.recurrent.form import RecurrentForm, wanted_results
from intarsia.passes.recurrent.slicing import numbers, part

Results = tuple[Expr, ...]
"""The hidden states of all steps, (steps, 1, batch, width), and the states after the last step."""


def unrolled(direction: Direction, steps: int) -> Results:
    """Write a direction as the operators of all its steps."""
    states: States = direction.initial
    if direction.mask is not None:
        states = _with_zeros(direction, states)
    rows: list[Expr] = []
    for t in reversed(range(steps)) if direction.is_backward else range(steps):
        mask = None if direction.mask is None else part(direction.mask, t, t + 1, 0)
        row, states = _masked_step(direction, part(direction.inputs, t, t + 1, 0), mask, states)
        rows.append(row)
    ordered = rows[::-1] if direction.is_backward else rows
    whole = ordered[0] if steps == 1 else call("Concat", *ordered, axis=0)
    final = [state for state in states if state is not None]
    return (call("Unsqueeze", whole, numbers(1)), *_started(direction, final))


def scanned(direction: Direction) -> Results:
    """Write a direction as a Scan over its steps, whose body is one step."""
    initial = [
        call("Squeeze", state, numbers(0))
        for state in _with_zeros(direction, direction.initial)
        if state is not None
    ]
    over = [direction.inputs] if direction.mask is None else [direction.inputs, direction.mask]
    states = [Var(f"state{at}", checked_type=value.checked_type) for at, value in enumerate(initial)]
    slices = [Var(f"slice{at}", checked_type=_row_type(value)) for at, value in enumerate(over)]
    mask = slices[1] if len(slices) > 1 else None
    row, after = _masked_step(direction, slices[0], mask, tuple(states))
    fields = tuple(state for state in after if state is not None)
    body = Function((*states, *slices), Tuple((*fields, row)))
    backward = (int(direction.is_backward),)
    scan = call(
        "Scan",
        *initial,
        *over,
        body,
        outputs=len(fields) + 1,
        num_scan_inputs=len(over),
        scan_input_directions=backward * len(over),
        scan_output_directions=backward,
    )
    whole = call("Unsqueeze", tuple_get(scan, len(fields)), numbers(1))
    final = [call("Unsqueeze", tuple_get(scan, at), numbers(0)) for at in range(len(fields))]
    return (whole, *_started(direction, final))


def joined_results(layer: Call, form: RecurrentForm, directions: Sequence[Results]) -> Expr:
    """Return what a call of a layer returns, from the results of its directions."""
    fields = []
    for number, parts in enumerate(zip(*directions, strict=True)):
        value = parts[0] if len(parts) == 1 else call("Concat", *parts, axis=0 if number else 1)
        if form.is_batch_first:
            value = call("Transpose", value, perm=(1, 0, 2) if number else (2, 0, 1, 3))
        fields.append(value)
    return Tuple(tuple(fields[: wanted_results(layer)])) if OUTPUTS in layer.attrs else fields[0]


def _masked_step(
    direction: Direction, inputs: Expr, mask: Expr | None, states: States
) -> tuple[Expr, tuple[Expr, ...]]:
    """Return the row of outputs of a step and the states after it.

    Where a sequence has ended, its states stay as they are, and the outputs are zero. Backward steps thus
    begin with the last one of each sequence, as ONNX says.
    """
    after = direction.cell.step(inputs, states)
    if mask is None:
        return after[0], after
    zero = Constant(np.zeros((), direction.cell.form.x.dtype.numpy))
    kept = tuple(
        call("Where", mask, new, old) for new, old in zip(after, states, strict=True) if old is not None
    )
    return call("Where", mask, after[0], zero), kept


def _started(direction: Direction, final: Sequence[Expr]) -> list[Expr]:
    """Return the last states: zero for sequences without steps, as onnxruntime has it (ONNX is silent)."""
    if direction.mask is None:
        return list(final)
    has_steps = part(direction.mask, 0, 1, 0)
    if isinstance(has_steps, Constant) and bool(has_steps.data.all()):
        return list(final)
    zero = Constant(np.zeros((), direction.cell.form.x.dtype.numpy))
    return [
        state if before is None else call("Where", has_steps, state, zero)
        for state, before in zip(final, direction.initial, strict=True)
    ]


def _with_zeros(direction: Direction, states: States) -> tuple[Expr, ...]:
    form = direction.cell.form
    return tuple(zero_state(form, direction.inputs) if state is None else state for state in states)


def _row_type(value: Expr) -> TensorType:
    type_ = value.checked_type
    assert isinstance(type_, TensorType)
    assert type_.shape is not None
    return TensorType(type_.shape[1:], type_.dtype)
