"""Channels of values between layers, scaled by powers of two, which layers before and after compensate.

    %h = Relu(Conv(%x, W, b));  Conv(%h, V)   ->   %h = Relu(Conv(%x, W / s, b / s));  Conv(%h, V * s)

Powers of two change no digit of a float32, so both programs compute the same bits (but for numbers below
1e-30). What changes is the ranges that integers have to represent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Call, Constant, Expr, Function, Op, TensorType, Tuple, with_children, with_fields
from intarsia.ir.traversal import children
from intarsia.op.call import call
from intarsia.op.infer import typed
from intarsia.passes.quantise.heavy_layer import HeavyLayer, heavy_layers, layer_of, top_level
from intarsia.passes.quantise.weight_channels import input_factor, output_factor

Array = npt.NDArray[Any]
Position = tuple[Call, int]
"""A call, and the position of one of its constant arguments."""

LARGEST_EXPONENT: Final = 12
"""Largest magnitude of an exponent: weights down to 2 ** -114 keep all digits."""

_HOMOGENEOUS: Final = frozenset(
    {"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Identity", "LeakyRelu", "MaxPool", "PRelu", "Relu"}
)
"""Operators that give a scaled result for a scaled channel of their first argument."""

_RESHAPING: Final = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})

_NORMALISING: Final = frozenset({"LayerNormalization", "RMSNormalization"})
"""Normalisations with a scale, and maybe a bias, for each index of the last axis."""

_NORMALISING_CHANNELS: Final = frozenset(
    {"BatchNormalization", "GroupNormalization", "InstanceNormalization"}
)
"""Normalisations with a scale and a bias for each index of axis 1."""


@dataclass(frozen=True, slots=True, eq=False)
class ScalableValue:
    """A value that heavy layers read, directly or behind operators that keep a scaled channel scaled.

    Attributes:
        value: The value.
        axis: Axis of its channels, negative.
        readers: Layers that read it.
        absorbing: Constants that a factor for each channel can be divided into; empty if the value has other
            readers, or what computes it has no such constants.
    """

    value: Expr
    axis: int
    readers: tuple[HeavyLayer, ...]
    absorbing: tuple[Position, ...]

    @property
    def number(self) -> int:
        """Least number of a reader, by which records name the value."""
        return min(layer.number for layer in self.readers)

    @property
    def channels(self) -> int:
        """Number of channels."""
        return self.readers[0].input_channels


def scalable_values(body: Expr) -> tuple[ScalableValue, ...]:
    """Return the values that heavy layers of a body read, by the least number of a reader.

    Args:
        body: Body of a function, with types.
    """
    nodes = tuple(top_level(body))
    users = _users(nodes)
    results = set(body.fields if isinstance(body, Tuple) else (body,))
    sources: dict[Expr, list[tuple[HeavyLayer, int, tuple[Expr, ...]]]] = {}
    for layer in heavy_layers(nodes):
        source, axis, passed = _source(layer)
        sources.setdefault(source, []).append((layer, axis, passed))
    values = []
    for source, reads in sources.items():
        axes = {axis for _, axis, _ in reads}
        layers = tuple(layer for layer, _, _ in reads)
        if len(axes) > 1 or len({layer.input_channels for layer in layers}) > 1:
            continue
        inner = {source, *(node for _, _, passed in reads for node in passed)}
        reading: set[Position] = {(layer.call, 0) for layer in layers}
        is_private = inner.isdisjoint(results) and all(
            user in inner or (user, position) in reading
            for node in inner
            for user, position in users.get(node, ())
        )
        (axis,) = axes
        absorbing = _absorbing(source, axis, users) if is_private else None
        values.append(ScalableValue(source, axis, layers, tuple(absorbing or ())))
    return tuple(sorted(values, key=lambda value: value.number))


def computing_layer(value: ScalableValue) -> HeavyLayer | None:
    """Return the layer whose weights factors of a value's channels go into; None if there is none."""
    for user, position in value.absorbing:
        layer = layer_of(user)
        if layer is not None and position == 1:
            return layer
    return None


def with_scaled_channels(function: Function, exponents: Mapping[int, Sequence[int]]) -> Function:
    """Return a function with channels of values divided by powers of two, and weights behind them multiplied.

    A value that cannot be scaled where it is computed is multiplied in front of its readers.

    Args:
        function: The function, with types.
        exponents: Exponents for each channel, by the number of a value.
    """
    factors: dict[Position, Array] = {}
    inserted: dict[Position, tuple[Expr, Array]] = {}
    for value in scalable_values(function.body):
        powers = np.asarray(exponents.get(value.number, ()), np.int32)
        if not powers.any() or powers.shape != (value.channels,):
            continue
        scale = np.ldexp(np.float32(1), powers)
        for layer in value.readers:
            _multiply(factors, (layer.call, 1), input_factor(layer, scale))
        for position in value.absorbing:
            _multiply(factors, position, _absorbed_factor(position, value.axis, 1 / scale))
        if not value.absorbing:
            for layer in value.readers:
                inserted[layer.call, 0] = layer.call.args[0], _along(1 / scale, layer.input_axis)
    if not factors:
        return function
    return with_fields(function, body=_rewritten(function.body, factors, inserted))


def _rewritten(
    body: Expr, factors: Mapping[Position, Array], inserted: Mapping[Position, tuple[Expr, Array]]
) -> Expr:
    new: dict[Expr, Expr] = {}
    products: dict[tuple[Expr, bytes], Expr] = {}
    changed = {user for user, _ in (*factors, *inserted)}
    for node in top_level(body):
        args = tuple(new.get(child, child) for child in children(node))
        current = with_children(node, args)
        if isinstance(node, Call) and isinstance(current, Call) and node in changed:
            scaled = list(current.args)
            for position, argument in enumerate(node.args):
                if (node, position) in factors:
                    scaled[position] = _scaled_constant(argument, factors[node, position])
                if (node, position) in inserted:
                    source, factor = inserted[node, position]
                    key = source, factor.tobytes()
                    if key not in products:
                        facts = {"span": node.span, "virtual_device": source.virtual_device}
                        constant = with_fields(Constant(factor), **facts)
                        products[key] = with_fields(call("Mul", scaled[position], constant), **facts)
                    scaled[position] = products[key]
            current = typed(with_fields(current, args=tuple(scaled)))
        new[node] = current
    return new[body]


def _scaled_constant(argument: Expr, factor: Array) -> Constant:
    assert isinstance(argument, Constant)
    data = np.ascontiguousarray(argument.data * factor)
    return with_fields(argument, data=data, checked_type=Constant(data).checked_type)


def _multiply(factors: dict[Position, Array], position: Position, factor: Array) -> None:
    factors[position] = factors[position] * factor if position in factors else factor


def _absorbed_factor(position: Position, axis: int, factor: Array) -> Array:
    """Return the factors of a constant for factors of the channels of what a call computes."""
    user, number = position
    layer = layer_of(user)
    if layer is not None and number == 1:
        return output_factor(layer, factor)
    if layer is not None or _name(user) in _NORMALISING_CHANNELS or _name(user) in _NORMALISING:
        return factor
    return _along(factor, axis)


def _along(factor: Array, axis: int) -> Array:
    """Return factors of an axis, counted from the back, in a shape that broadcasts."""
    return factor.reshape(-1, *(1,) * (-1 - axis))


def _source(layer: HeavyLayer) -> tuple[Expr, int, tuple[Expr, ...]]:
    """Return the value before operators that pass on scaled channels, its axis, and these operators."""
    value, axis = layer.call.args[0], layer.input_axis
    passed: list[Expr] = []
    while isinstance(value, Call) and "outputs" not in value.attrs:
        before = _axis_before(value, axis)
        if before is None:
            break
        passed.append(value)
        value, axis = value.args[0], before
    return value, axis, tuple(passed)


def _axis_before(node: Call, axis: int) -> int | None:
    """Return the axis of the channels before an operator that passes them on; None for other operators."""
    name = _name(node)
    if name in _HOMOGENEOUS:
        return axis
    if name not in _RESHAPING:
        return None
    before, after = _shape(node.args[0]), _shape(node)
    if before is None or after is None or not before or not after:
        return None
    if axis == -1 and before[-1] == after[-1] and isinstance(after[-1], int):
        return -1
    is_pooled = len(after) == 2 and len(before) > 2 and before[:2] == after and set(before[2:]) == {1}
    return 1 - len(before) if axis == -1 and is_pooled else None


def _absorbing(node: Expr, axis: int, users: Mapping[Expr, Sequence[Position]]) -> list[Position] | None:
    """Return the constants that factors of a value's channels go into; None if there are none."""
    if not isinstance(node, Call) or not isinstance(node.op, Op) or node.op.domain or "outputs" in node.attrs:
        return None
    layer, name, rank = layer_of(node), _name(node), len(_shape(node) or ())
    if layer is not None:
        of_layer = 1 - rank if layer.is_convolution else -1
        has_bias = len(node.args) > 2 and not _is_absent(node.args[2])
        if axis != of_layer or (has_bias and not isinstance(node.args[2], Constant)):
            return None
        return [(node, 1), *([(node, 2)] if has_bias else [])]
    is_last = name in _NORMALISING and axis == -1 and node.attrs.get("axis", -1) in (-1, rank - 1)
    if is_last or (name in _NORMALISING_CHANNELS and axis == 1 - rank):
        given = [
            position
            for position in (1, 2)
            if len(node.args) > position and not _is_absent(node.args[position])
        ]
        return _constants(node, given)
    if name not in ("Add", "Mul", "Sub"):
        return None
    return _absorbing_sum(node, axis, users)


def _absorbing_sum(node: Call, axis: int, users: Mapping[Expr, Sequence[Position]]) -> list[Position] | None:
    """Return the constants of a product, or of a sum and of what its other term is computed with."""
    constants = [position for position in (0, 1) if isinstance(node.args[position], Constant)]
    if len(constants) != 1:
        return None
    other = node.args[1 - constants[0]]
    # The other one must have the channels already, and not be broadcast to them.
    if _shape(other) != _shape(node):
        return None
    if _name(node) == "Mul":
        return [(node, constants[0])]
    rest = _absorbing(other, axis, users) if len(users.get(other, ())) == 1 else None
    return None if rest is None else [(node, constants[0]), *rest]


def _constants(node: Call, positions: Sequence[int]) -> list[Position] | None:
    are_constant = positions and all(isinstance(node.args[position], Constant) for position in positions)
    return [(node, position) for position in positions] if are_constant else None


def _is_absent(argument: Expr) -> bool:
    return isinstance(argument, Tuple) and not argument.fields


def _users(nodes: Iterable[Expr]) -> dict[Expr, list[Position]]:
    """Return the calls that read each value; what else reads it counts as a call of its own."""
    users: dict[Expr, list[Position]] = {}
    for node in nodes:
        if isinstance(node, Call):
            for position, argument in enumerate(node.args):
                users.setdefault(argument, []).append((node, position))
        else:
            for child in children(node):
                users.setdefault(child, []).append((_OTHER, 0))
    return users


_OTHER: Final = Call(Op("Identity"), ())
"""Reader in place of all that are no calls."""


def _name(node: Expr) -> str:
    is_call = isinstance(node, Call) and isinstance(node.op, Op) and not node.op.domain
    return node.op.name if is_call and isinstance(node, Call) and isinstance(node.op, Op) else ""


def _shape(value: Expr) -> tuple[object, ...] | None:
    return value.checked_type.shape if isinstance(value.checked_type, TensorType) else None
