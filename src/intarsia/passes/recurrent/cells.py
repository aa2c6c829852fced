"""One step of a recurrent layer: from its inputs and the states before to the states after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from intarsia.ir import Constant, Expr
from intarsia.op import call
from intarsia.passes.recurrent.activations import Activation
from intarsia.passes.recurrent.form import RecurrentForm
from intarsia.passes.recurrent.slicing import part

States = tuple[Expr | None, ...]
"""The hidden state, and the cell state of LSTM; None where a state is zero."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The weights of one direction that each step reads.

    Attributes:
        form: The layer.
        activations: The functions of this direction.
        recurrent: Transposed recurrence weights: one matrix (width, gates * width), or for GRU without
            `linear_before_reset` (width, 2 * width) for update and reset, (width, width) for the hidden gate.
        hidden_bias: Recurrence bias of the hidden gate, (width,), of GRU with `linear_before_reset`.
        peepholes: Peephole weights of LSTM for the gates i, o and f, each (width,); empty without them.
    """

    form: RecurrentForm
    activations: tuple[Activation, ...]
    recurrent: tuple[Expr, ...]
    hidden_bias: Expr | None = None
    peepholes: tuple[Expr, ...] = ()

    def step(self, inputs: Expr, states: States) -> tuple[Expr, ...]:
        """Return the states after a step.

        Args:
            inputs: Products of the inputs of the step with their weights, biases added, (..., gates * width).
            states: The states before, (..., width) each.
        """
        match self.form.operator:
            case "RNN":
                return (self._activated(0, self._added(inputs, self._product(states[0]))),)
            case "GRU":
                return (self._gru(inputs, states[0]),)
            case _:
                return self._lstm(inputs, states[0], states[1])

    def _gru(self, inputs: Expr, h: Expr | None) -> Expr:
        """The gates are in the order z (update), r (reset), h (hidden)."""
        width, split = self.form.width, 2 * self.form.width
        if h is not None and self.form.linear_before_reset:
            product = self._product(h)
            assert product is not None
            gates: Expr = call("Add", part(inputs, 0, split, -1), part(product, 0, split, -1))
            hidden: Expr | None = part(product, split, split + width, -1)
        else:
            gates = self._added(part(inputs, 0, split, -1), self._product(h))
            hidden = None
        update = self._activated(0, part(gates, 0, width, -1))
        candidate = self._candidate(part(inputs, split, split + width, -1), h, gates, hidden)
        kept = call("Mul", call("Sub", self._number(1.0), update), candidate)
        return kept if h is None else call("Add", kept, call("Mul", update, h))

    def _candidate(self, inputs: Expr, h: Expr | None, gates: Expr, hidden: Expr | None) -> Expr:
        """Return the hidden gate of GRU.

        Args:
            inputs: The gate's part of the products of the inputs.
            h: The state before.
            gates: Update and reset gate before their activation.
            hidden: The gate's part of the product of the state, where the reset gate comes behind it.
        """
        width = self.form.width
        if h is None and self.hidden_bias is None:
            return self._activated(1, inputs)
        reset = self._activated(0, part(gates, width, 2 * width, -1))
        if self.form.linear_before_reset:
            inner = hidden if self.hidden_bias is None else self._added(self.hidden_bias, hidden)
            assert inner is not None
            return self._activated(1, call("Add", inputs, call("Mul", reset, inner)))
        assert h is not None
        return self._activated(1, self._added(inputs, self._product(call("Mul", reset, h), 1)))

    def _lstm(self, inputs: Expr, h: Expr | None, c: Expr | None) -> tuple[Expr, Expr]:
        """The gates are in the order i (input), o (output), f (forget), c (cell)."""
        width = self.form.width
        sums = self._added(inputs, self._product(h))
        i, o, f, g = (part(sums, gate * width, (gate + 1) * width, -1) for gate in range(4))
        entered = self._activated(0, self._peeped(i, 0, c))
        cell = call("Mul", entered, self._activated(1, g))
        if c is not None:
            if self.form.input_forget:
                kept: Expr = call("Sub", self._number(1.0), entered)
            else:
                kept = self._activated(0, self._peeped(f, 2, c))
            cell = call("Add", call("Mul", kept, c), cell)
        left = self._activated(0, self._peeped(o, 1, cell))
        return call("Mul", left, self._activated(2, cell, is_clipped=False)), cell

    def _peeped(self, gate: Expr, number: int, c: Expr | None) -> Expr:
        if not self.peepholes or c is None:
            return gate
        return call("Add", gate, call("Mul", self.peepholes[number], c))

    def _product(self, state: Expr | None, matrix: int = 0) -> Expr | None:
        return None if state is None else call("MatMul", state, self.recurrent[matrix])

    @staticmethod
    def _added(value: Expr, product: Expr | None) -> Expr:
        return value if product is None else call("Add", product, value)

    def _activated(self, number: int, value: Expr, *, is_clipped: bool = True) -> Expr:
        clip = self.form.clip
        if clip is not None and is_clipped:
            value = call("Clip", value, self._number(-clip), self._number(clip))
        return self.activations[number].of(value, self.form.x.dtype.numpy)

    def _number(self, value: float) -> Constant:
        return Constant(np.array(value, self.form.x.dtype.numpy))
