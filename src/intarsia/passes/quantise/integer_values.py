"""Which values a quantised program computes in integers, and which arguments need a scale for that.

    %a = Relu(Conv(%x, W));  %b = Conv(%a, V);  Add(%b, %a)

Both convolutions are computed in integers, so their inputs %x and %a need scales. Add is too, if its result
is used by integer operators only: then its arguments %b and %a have scales, and no value between the
convolutions is a float32 in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from intarsia.ir import Call, Constant, Expr, If, Op
from intarsia.passes.quantise.heavy_layer import HeavyLayer, is_float32

Argument: TypeAlias = tuple[Expr, int]
"""A call, and the position of one of its arguments."""

MOVING: Final = frozenset({"Flatten", "Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators whose results are elements of their first argument: they keep its scale."""

FOLLOWING: Final = frozenset({"Clip", "Relu"})
"""Activations that are part of the operator before them."""


@dataclass(frozen=True, slots=True, eq=False)
class IntegerValues:
    """The part of a function that is computed in integers.

    Attributes:
        arguments: Arguments that need a scale.
        values: Results of integer operators, with those of activations and moving operators after them.
    """

    arguments: frozenset[Argument]
    values: frozenset[Expr]


def integer_values(
    nodes: Sequence[Expr], layers: Sequence[HeavyLayer], operators: Collection[str], results: Collection[Expr]
) -> IntegerValues:
    """Return what is computed in integers if some heavy layers are.

    Linear in nodes and edges for each round; a round takes out operators that would have to read or write
    float32, so that there are as many as such operators in a chain.

    Args:
        nodes: Expressions of the function, in an executable order.
        layers: Layers that are computed in integers.
        operators: Names of other operators that take part where all their neighbours do.
        results: Results of the function, which stay float32.
    """
    users = _users(nodes)
    heavy: set[Expr] = {layer.call for layer in layers}
    joined = {node for node in nodes if _operator(node) in operators and not _is_bias(node)} - heavy
    joined = {node for node in joined if _operands(node)}
    while True:
        values = _computed(nodes, heavy, joined)
        useful = _useful(nodes, users, heavy, joined)
        kept = {node for node in joined if node in values and node in useful and node not in results}
        if kept == joined:
            break
        joined = kept
    arguments: set[Argument] = {(call, 0) for call in heavy}
    arguments |= {(node, position) for node in joined for position in _operands(node)}
    return IntegerValues(frozenset(arguments), frozenset(values))


def _users(nodes: Sequence[Expr]) -> dict[Expr, list[Argument]]:
    users: dict[Expr, list[Argument]] = {}
    for node in nodes:
        if isinstance(node, Call):
            for position, argument in enumerate(node.args):
                users.setdefault(argument, []).append((node, position))
    return users


def _computed(nodes: Sequence[Expr], heavy: Collection[Expr], joined: Collection[Expr]) -> set[Expr]:
    """Return the values that come out of integer operators."""
    values: set[Expr] = set()
    for node in nodes:
        if (
            node in heavy
            or (node in joined and values.issuperset(_inputs(node)))
            or (_passes_on(node) and isinstance(node, Call) and node.args[0] in values)
            or (_is_bias(node) and values.issuperset(_inputs(node)))
        ):
            values.add(node)
    return values


def _useful(
    nodes: Sequence[Expr],
    users: Mapping[Expr, Sequence[Argument]],
    heavy: Collection[Expr],
    joined: Collection[Expr],
) -> set[Expr]:
    """Return the values that integer operators alone use, directly or behind activations and moves."""
    useful: set[Expr] = set()
    for node in reversed(nodes):
        uses = users.get(node, ())
        if uses and all(
            (user in heavy and position == 0)
            or (user in useful and (user in joined or _passes_on(user) or _is_bias(user)))
            for user, position in uses
        ):
            useful.add(node)
    return useful


def _passes_on(node: Expr) -> bool:
    """Whether an operator is an activation or moves elements of its first argument."""
    name = _operator(node)
    return (name in MOVING or name in FOLLOWING) and isinstance(node, Call) and "outputs" not in node.attrs


def _is_bias(node: Expr) -> bool:
    """Whether a call adds a constant: part of the operator before it."""
    return _operator(node) == "Add" and len(_operands(node)) == 1


def _operands(node: Expr) -> tuple[int, ...]:
    """Return the positions of the computed float32 arguments of a call."""
    if not isinstance(node, Call):
        return ()
    return tuple(
        position
        for position, argument in enumerate(node.args)
        if is_float32(argument) and not isinstance(argument, Constant)
    )


def _inputs(node: Expr) -> list[Expr]:
    assert isinstance(node, Call)
    return [node.args[position] for position in _operands(node)]


def _operator(node: Expr) -> str:
    """Return the name of the ONNX operator that a value is a call of; "" for others."""
    is_call = isinstance(node, Call) and isinstance(node.op, Op) and not node.op.domain
    return node.op.name if is_call and isinstance(node, Call) and isinstance(node.op, Op) else ""


def source_of(value: Expr, values: Collection[Expr]) -> Expr:
    """Return the integer value that moving operators have made another one of.

    Args:
        value: A value that needs a scale.
        values: Results of integer operators; others are returned as they are.
    """
    while value in values and is_moved(value) and isinstance(value, Call):
        value = value.args[0]
    return value


def before_moves(value: Expr) -> Expr:
    """Return the value that moving operators have made another one of, whatever computes it."""
    while is_moved(value) and isinstance(value, Call) and is_float32(value.args[0]):
        if isinstance(value.args[0], Constant | If):
            break
        value = value.args[0]
    return value


def is_moved(value: Expr) -> bool:
    """Whether a value consists of elements of another one."""
    return _operator(value) in MOVING and _passes_on(value)
