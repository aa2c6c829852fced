"""Elementwise chains, gathers, resizes, and layers that only move data."""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np
from benchmarks.sweep.case import Case, Sizes, Value
from benchmarks.sweep.parts import activation
from benchmarks.sweep.rowwise import draw_shape
from benchmarks.sweep.writer import Layer, LayerWriter

_VECTOR: Final = 16
_UNARY: Final = (
    *("Relu", "Sigmoid", "Tanh", "Exp", "Abs", "Neg", "Erf", "Softplus", "Elu", "HardSwish", "LeakyRelu"),
    *("Floor", "Sqrt", "Log", "Sin"),
)
_BINARY: Final = ("Add", "Mul", "Sub", "Max", "Min", "Div")
_OPERANDS: Final = ("tensor", "row", "column", "scalar")
_MOVES: Final = (
    *("transpose", "concat", "split", "slice", "pad", "shuffle", "depth-to-space", "space-to-depth"),
    *("expand", "windows"),
)


def draw_elementwise(sizes: Sizes) -> dict[str, Value]:
    """Draw a chain of elementwise operators."""
    steps = []
    for draw in sizes.repeat(sizes.between(1, 8)):
        if draw.flip(0.5):
            steps.append(draw.choose(_UNARY))
        else:
            steps.append(f"{draw.choose(_BINARY, (4, 4, 1, 1, 1, 1))}-{draw.choose(_OPERANDS, (4, 2, 2, 2))}")
    return {"shape": draw_shape(sizes, 2, 4), "chain": "+".join(steps)}


def write_elementwise(case: Case) -> Layer:
    """Write a chain of elementwise operators."""
    net, shape = LayerWriter(), case.counts("shape")
    x = net.input(shape)
    for step in case.word("chain").split("+"):
        operator, _, operand = step.partition("-")
        if operator in {"Sqrt", "Log"}:
            x = net.node("Add", net.node("Abs", x), net.scalar(1e-2))
        if operator == "Exp":
            x = net.node("Min", x, net.scalar(3))
        x = net.node(operator, x, *[_operand(net, operand, operator, shape)] * bool(operand))
    return net.finish(x)


def _operand(net: LayerWriter, operand: str, operator: str, shape: tuple[int, ...]) -> str:
    match operand:
        case "scalar":
            return net.scalar(1.25)
        case "row":
            return net.positive((shape[-1],))
        case "column":
            return net.positive((shape[0], *(1,) * (len(shape) - 1)))
    other = net.input(shape)
    return net.node("Exp", net.node("Tanh", other)) if operator == "Div" else other


def elementwise_properties(case: Case) -> list[str]:
    """Return what may make a chain slow, most specific first."""
    shape, steps = case.counts("shape"), case.word("chain").split("+")
    functions = {"Sigmoid", "Tanh", "Exp", "Erf", "Softplus", "Elu", "Log", "Sin"} & set(steps)
    named = {
        **dict.fromkeys(sorted(functions & {"Erf", "Softplus", "Log", "Sin", "Tanh"}), True),
        "broadcast along rows": any(step.endswith("-column") for step in steps),
        "broadcast row": any(step.endswith("-row") for step in steps),
        "last extent under 16": shape[-1] < _VECTOR,
        "one operator": len(steps) == 1,
        "several operators": len(steps) > 1,
    }
    return [name for name, holds in named.items() if holds]


def draw_gather(sizes: Sizes) -> dict[str, Value]:
    """Draw a gather: rows of a table, elements along an axis, or points."""
    operator = sizes.choose(("rows", "GatherElements", "GatherND", "columns"), (5, 1, 1, 1))
    return {
        "op": operator,
        "table": sizes.between(8, 65_536),
        "width": sizes.choose((16, 32, 64, 128, 256, 300, 512, 768, 1024)),
        "count": sizes.between(64, 65_536),
        "then": sizes.choose(("none", "add", "sum"), (2, 1, 1)) if operator == "rows" else "none",
    }


def write_gather(case: Case) -> Layer:
    """Write a gather and what follows it; small tables are inputs, large ones of rows are weights."""
    net, operator = LayerWriter(), case.word("op")
    table, width, count = (case.count(name) for name in ("table", "width", "count"))
    match operator:
        case "rows":
            rows = net.node("Gather", net.weight((table, width)), net.indices((1, count), 0, table), axis=0)
            if case.word("then") == "add":
                rows = net.node("Add", rows, net.weight((count, width)))
            if case.word("then") == "sum":
                rows = net.node("ReduceSum", rows, net.constant([1]), keepdims=0)
            return net.finish(rows)
        case "columns":
            x, chosen = net.input((count, width)), net.indices((max(1, width // 2),), 0, width)
            return net.finish(net.node("Gather", x, chosen, axis=1))
        case "GatherElements":
            x, chosen = net.input((table, width)), net.indices((count, width), 0, table)
            return net.finish(net.node(operator, x, chosen, axis=0))
        case _:
            x, chosen = net.input((table, width)), net.indices((count, 1), 0, table)
            return net.finish(net.node(operator, x, chosen))


def gather_properties(case: Case) -> list[str]:
    """Return what may make a gather slow, most specific first."""
    return [case.word("op"), f"then {case.word('then')}"]


def draw_resize(sizes: Sizes) -> dict[str, Value]:
    """Draw a change of the size of feature maps."""
    mode = sizes.choose(("nearest", "linear", "cubic"), (4, 4, 1))
    return {
        "mode": mode,
        "n": sizes.batch(),
        "c": sizes.channels(512),
        "image": sizes.image(2),
        "percent": sizes.choose((200, 400, 50, 150, 75, 130), (8, 2, 2, 1, 1, 1)),
        "points": sizes.choose(("half_pixel", "align_corners", "asymmetric"), (3, 1, 2)),
        "then": sizes.choose(("none", "add", "concat"), (2, 1, 1)),
    }


def write_resize(case: Case) -> Layer:
    """Write a change of size and what follows it."""
    net, share = LayerWriter(), case.count("percent") / 100
    channels, image = case.count("c"), case.counts("image")
    x = net.input((case.count("n"), channels, *image))
    after = [max(1, int(side * share)) for side in image]
    options = {"nearest_mode": "floor"} if case.word("mode") == "nearest" else {}
    x = net.node(
        "Resize",
        x,
        "",
        "",
        net.constant((case.count("n"), channels, *after)),
        mode=case.word("mode"),
        coordinate_transformation_mode=case.word("points"),
        **options,
    )
    match case.word("then"):
        case "add":
            x = net.node("Add", x, net.input(net.shape(x)))
        case "concat":
            x = net.node("Concat", x, net.input(net.shape(x)), axis=1)
    return net.finish(x)


def resize_properties(case: Case) -> list[str]:
    """Return what may make a change of size slow, most specific first."""
    percent = case.count("percent")
    named = {
        f"{case.word('mode')} by {'a whole factor' if percent % 100 == 0 else 'a fraction'}": True,
        case.word("points"): True,
        f"then {case.word('then')}": True,
        "batch": case.count("n") > 1,
    }
    return [name for name, holds in named.items() if holds]


def draw_movement(sizes: Sizes) -> dict[str, Value]:
    """Draw a layer that moves data."""
    move = sizes.choose(_MOVES, (4, 4, 3, 2, 2, 1, 1, 1, 1, 1))
    if move in {"shuffle", "depth-to-space", "space-to-depth", "windows"}:
        side = 2 * sizes.between(4, 112)
        channels = 4 * sizes.between(1, 128)
        return {"move": move, "shape": (sizes.batch(), channels, side, side), "then": "none", "axis": 1}
    shape = draw_shape(sizes, 3, 4)
    order = sizes.shuffled(range(len(shape)))
    axis = sizes.choose(range(1, len(shape)))
    then = sizes.choose(("none", "relu", "silu"), (2, 1, 1))
    if move == "transpose":
        return {"move": move, "shape": shape, "perm": order, "then": then}
    return {"move": move, "shape": shape, "axis": axis, "parts": sizes.between(2, 6), "then": then}


def write_movement(case: Case) -> Layer:
    """Write a layer that moves data."""
    net, shape = LayerWriter(), case.counts("shape")
    results = _write_move(net, case, net.input(shape))
    return net.finish(*(activation(net, result, case.word("then")) for result in results))


def _write_move(net: LayerWriter, case: Case, x: str) -> tuple[str, ...]:
    shape, axis = case.counts("shape"), int(case.values.get("axis", 1))  # type: ignore[arg-type]  # a number
    match case.word("move"):
        case "transpose":
            return (net.node("Transpose", x, perm=case.counts("perm")),)
        case "concat":
            others = [
                net.input((*shape[:axis], max(1, shape[axis] // (number + 1)), *shape[axis + 1 :]))
                for number in range(1, case.count("parts"))
            ]
            return (net.node("Concat", x, *others, axis=axis),)
        case "split":
            count = min(case.count("parts"), shape[axis])
            return net.nodes(count, "Split", x, axis=axis, num_outputs=count)
        case "slice":
            starts, ends = net.constant([shape[axis] // 4]), net.constant([shape[axis]])
            return (net.node("Slice", x, starts, ends, net.constant([axis])),)
        case "pad":
            pads = np.zeros((2, len(shape)), np.int64)
            pads[:, axis] = (1, 2)
            return (net.node("Pad", x, net.constant(pads.ravel())),)
        case "expand":
            wide = net.reshape(x, *shape[:axis], 1, *shape[axis:])
            target = (*shape[:axis], case.count("parts"), *shape[axis:])
            return (net.node("Expand", wide, net.constant(target)),)
        case _:
            return (_write_rearrangement(net, case, x),)


def _write_rearrangement(net: LayerWriter, case: Case, x: str) -> str:
    batch, channels, height, width = case.counts("shape")
    match case.word("move"):
        case "depth-to-space":
            return net.node("DepthToSpace", x, blocksize=2, mode="CRD")
        case "space-to-depth":
            return net.node("SpaceToDepth", x, blocksize=2)
        case "shuffle":
            groups = net.reshape(x, batch, 2, channels // 2, height, width)
            turned = net.node("Transpose", groups, perm=[0, 2, 1, 3, 4])
            return net.reshape(turned, batch, channels, height, width)
        case _:
            windows = net.reshape(x, batch, channels, height // 2, 2, width // 2, 2)
            turned = net.node("Transpose", windows, perm=[0, 2, 4, 3, 5, 1])
            return net.reshape(turned, -1, 4, channels)


def movement_properties(case: Case) -> list[str]:
    """Return what may make a layer that moves data slow, most specific first."""
    shape = case.counts("shape")
    axis = case.values.get("axis")
    named = {
        case.word("move"): True,
        "last axis": axis == len(shape) - 1,
        "last extent under 16": shape[-1] < _VECTOR,
        f"then {case.word('then')}": True,
        "over 1 million elements": prod(shape) > 1 << 20,
    }
    return [name for name, holds in named.items() if holds]
