"""Operators whose steps follow one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch

from intarsia.toolchain.torch.rule import Computation, NodeForm, Rule, Tensor

_ACTIVATIONS: Final = ("Sigmoid", "Tanh", "Tanh")


def _lstm(form: NodeForm) -> Computation:
    """Torch's own, whose gates are in another order."""
    direction, hidden = form.text("direction", "forward"), form.attribute("hidden_size", 0)
    count = 2 if direction == "bidirectional" else 1
    names = [
        (item.decode() if isinstance(item, bytes) else item) for item in form.attribute("activations", ())
    ]
    form.require(tuple(names) in ((), _ACTIVATIONS * count), f"with the activations {', '.join(names)}")
    form.require("clip" not in form.attributes, "with clip")
    form.require(not form.attribute("layout", 0), "with the batch first")
    form.require(not form.attribute("input_forget", 0), "with coupled gates")
    form.require(not (form.has(4) or form.has(7)), "with lengths of sequences or peepholes")

    def run(x: Tensor, w: Tensor, r: Tensor, *optional: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        known = dict(enumerate(optional))
        bias, hidden_state, cell = (known.get(position) for position in (0, 2, 3))
        parameters = []
        for side in range(count):
            parameters += [_reordered(w[side], hidden), _reordered(r[side], hidden)]
            if bias is not None:
                parameters += [_reordered(part, hidden) for part in bias[side].split(4 * hidden)]
        zeros = x.new_zeros(count, x.shape[1], hidden)
        state = [zeros if item is None else item for item in (hidden_state, cell)]
        given = x.flip(0) if direction == "reverse" else x
        y, last, last_cell = torch.lstm(
            given, state, parameters, bias is not None, 1, 0.0, False, count == 2, False
        )
        y = y.unflatten(2, (count, hidden)).permute(0, 2, 1, 3)
        return y.flip(0) if direction == "reverse" else y, last, last_cell

    return run


def _reordered(weight: Tensor, hidden: int) -> Tensor:
    """Gates as torch has them: input, forget, cell, output; ONNX has input, output, forget, cell."""
    i, o, f, c = weight.split(hidden)
    return torch.cat((i, f, c, o))


RECURRENT: Mapping[str, Rule] = {"LSTM": _lstm}
"""Rules by name of the operator."""
