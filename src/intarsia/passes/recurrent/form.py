"""What the attributes and argument types of a recurrent layer say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.ir import ABSENT, Attrs, Call, Constant, Dim, Op, TensorType
from intarsia.op.node import OUTPUTS
from intarsia.passes.recurrent.activations import Activation, parse_activations

ARGUMENTS: Final = ("x", "w", "r", "b", "sequence_lens", "initial_h", "initial_c", "p")
"""Arguments of LSTM by position; GRU and RNN have the first six."""

GATES: Final = {"RNN": 1, "GRU": 3, "LSTM": 4}
"""Rows of the weight matrices divided by the hidden size, by operator."""

_DIRECTIONS: Final = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_DEFAULTS: Final = {
    "RNN": ("Tanh",),
    "GRU": ("Sigmoid", "Tanh"),
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
}


@dataclass(frozen=True, slots=True)
class RecurrentForm:
    """The form of one call of RNN, GRU or LSTM.

    Attributes:
        operator: "RNN", "GRU" or "LSTM".
        width: The hidden size.
        directions: Whether the steps run backward, for each direction.
        activations: The functions of each direction.
        clip: Bound of the inputs of activations; None without one.
        linear_before_reset: Whether GRU multiplies by the reset gate behind the product.
        input_forget: Whether the forget gate of LSTM is one less the input gate.
        is_batch_first: Whether the batch is the first axis (`layout=1`).
        x: Type of the inputs; its rank is 3.
    """

    operator: str
    width: int
    directions: tuple[bool, ...]
    activations: tuple[tuple[Activation, ...], ...]
    clip: float | None
    linear_before_reset: bool
    input_forget: bool
    is_batch_first: bool
    x: TensorType

    @property
    def gates(self) -> int:
        """Number of gates: rows of the weights divided by the hidden size."""
        return GATES[self.operator]

    @property
    def time_axis(self) -> int:
        """Axis of the inputs along which the steps follow one another."""
        return 1 if self.is_batch_first else 0

    @property
    def sizes(self) -> tuple[Dim, ...]:
        """Dimensions of the inputs."""
        assert self.x.shape is not None
        return self.x.shape

    @property
    def steps(self) -> int | None:
        """Number of steps of one direction; None if it is known only at run time."""
        size = self.sizes[self.time_axis]
        return size if isinstance(size, int) else None

    @property
    def count(self) -> int:
        """Number of steps in all directions; 0 if it is known only at run time."""
        return (self.steps or 0) * len(self.directions)

    @property
    def batch(self) -> int | None:
        """Number of sequences; None if it is known only at run time."""
        size = self.sizes[1 - self.time_axis]
        return size if isinstance(size, int) else None


def is_recurrent(call: Call) -> bool:
    """Whether an expression calls RNN, GRU or LSTM."""
    return isinstance(call.op, Op) and not call.op.domain and call.op.name in GATES


def recurrent_form(layer: Call) -> RecurrentForm | str:
    """Return the form of a typed recurrent layer, or why it cannot be written as operators."""
    assert isinstance(layer.op, Op)
    name, attrs = layer.op.name, layer.attrs
    types = [arg.checked_type for arg in layer.args]
    x, r = types[0], types[2]
    if not isinstance(x, TensorType) or x.shape is None or len(x.shape) != 3 or not x.dtype.is_float:
        return f"{name} of inputs that are no sequences of known rank"
    if not isinstance(r, TensorType) or not r.is_static or len(r.static_shape) != 3:
        return f"{name} of a hidden size that is known only at run time"
    direction = _text(attrs, "direction", "forward")
    if direction not in _DIRECTIONS or r.static_shape[0] != len(_DIRECTIONS[direction]):
        return f"{name} with the direction {direction!r}"
    if r.static_shape[1:] != (GATES[name] * r.static_shape[2], r.static_shape[2]):
        return f"{name} with recurrence weights of the shape {r.static_shape}"
    directions = _DIRECTIONS[direction]
    activations = _activations(name, attrs, len(directions))
    if activations is None:
        return f"{name} with the activations {', '.join(map(str, _list(attrs, 'activations')))}"
    time = 1 if attrs.get("layout", 0) else 0
    length = _length_out_of_range(layer, x.shape[time])
    if length is not None:
        return f"{name} with the sequence length {length}, expected 0 to {x.shape[time]}"
    clip = attrs.get("clip")
    return RecurrentForm(
        operator=name,
        width=r.static_shape[2],
        directions=directions,
        activations=activations,
        clip=clip if isinstance(clip, float) and clip > 0 else None,
        linear_before_reset=bool(attrs.get("linear_before_reset", 0)),
        input_forget=bool(attrs.get("input_forget", 0)),
        is_batch_first=bool(attrs.get("layout", 0)),
        x=x,
    )


def _length_out_of_range(layer: Call, steps: object) -> int | None:
    """A constant length that is negative or beyond the steps, as far as those are known; None if none is."""
    position = ARGUMENTS.index("sequence_lens")
    lengths = layer.args[position] if is_given(layer, "sequence_lens") else None
    if not isinstance(lengths, Constant):
        return None
    most = steps if isinstance(steps, int) else np.iinfo(np.int32).max
    beyond = lengths.data[(lengths.data < 0) | (lengths.data > most)]
    return int(beyond[0]) if beyond.size else None


def is_given(layer: Call, argument: str) -> bool:
    """Whether a layer has one of its optional arguments."""
    position = ARGUMENTS.index(argument)
    return position < len(layer.args) and layer.args[position].checked_type != ABSENT


def wanted_results(layer: Call) -> int:
    """Number of results that the call returns."""
    count = layer.attrs.get(OUTPUTS, 1)
    assert isinstance(count, int)
    return count


def _activations(name: str, attrs: Attrs, directions: int) -> tuple[tuple[Activation, ...], ...] | None:
    defaults = _DEFAULTS[name] * directions
    names = [str(item) for item in _list(attrs, "activations")] or list(defaults)
    numbers = [
        [float(item) for item in _list(attrs, key) if isinstance(item, (int, float))]
        for key in ("activation_alpha", "activation_beta")
    ]
    if len(names) != len(defaults):
        return None
    functions = parse_activations(names, *numbers)
    if functions is None:
        return None
    share = len(_DEFAULTS[name])
    return tuple(functions[at * share : (at + 1) * share] for at in range(directions))


def _list(attrs: Attrs, name: str) -> tuple[object, ...]:
    value = attrs.get(name, ())
    return value if isinstance(value, tuple) else ()


def _text(attrs: Attrs, name: str, default: str) -> str:
    return str(attrs.get(name, default))
