"""The error that each layer alone makes in a narrower type, by one program with switches for each layer.

    %s = Gather(%layer_switches, 0)
    Conv(Where(%s, DequantizeLinear(QuantizeLinear(%x)), %x), Where(%s, rounded weights, weights))

It is compiled once, and runs once for each layer, type and input set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Call, Constant, DType, Expr, Function, IRModule, Op, TensorType, Var, with_fields
from intarsia.ir.traversal import children, with_children
from intarsia.op.call import call
from intarsia.op.infer import typed
from intarsia.op.onnx_types import elem_type_of
from intarsia.op.simulated_quantize_op import along_axis
from intarsia.passes.annotate_quantization import OPERATORS
from intarsia.passes.quantise.heavy_layer import HeavyLayer, heavy_layers, is_annotation, top_level
from intarsia.passes.quantise.integer_values import FOLLOWING, MOVING
from intarsia.passes.quantise.realized_layer import quantised_weight
from intarsia.tune.quantise.observation import InputSets
from intarsia.tune.quantise.output_error import relative_error
from intarsia.tune.quantise.program_runner import running_program

Array = npt.NDArray[Any]

_BFLOAT16, _FLOAT32 = elem_type_of(DType.BFLOAT16), elem_type_of(DType.FLOAT32)
_PASSING: Final = MOVING | FOLLOWING | frozenset(OPERATORS)
SWITCHES: Final = "layer_switches"
"""Name of the parameter: truth values, one for each layer, and then one for each in bfloat16."""


@dataclass(frozen=True, slots=True)
class LayerErrors:
    """Mean squared errors of outputs with each layer alone in a narrower type, as fractions of their power.

    Attributes:
        int8: Error of each layer in integers.
        bfloat16: Error of each layer in bfloat16; empty if it was not measured.
    """

    int8: tuple[float, ...]
    bfloat16: tuple[float, ...] = ()


def switched_program(calibrated: IRModule, *, with_bfloat16: bool = False) -> IRModule:
    """Return a program in float32 in which each layer can be switched to integers, or to bfloat16.

    Biases stay float32, and are not corrected.

    Args:
        calibrated: Program with calibrated annotations of all its layers.
        with_bfloat16: Whether there are switches to bfloat16.
    """
    main = calibrated["main"]
    nodes = tuple(top_level(main.body))
    layers = {layer.call: layer for layer in heavy_layers(nodes)}
    count = 2 * len(layers) if with_bfloat16 else len(layers)
    switches = Var(SWITCHES, checked_type=TensorType((count,), DType.BOOL))
    new: dict[Expr, Expr] = {}
    for node in nodes:
        if isinstance(node, Call) and is_annotation(node):
            new[node] = new.get(node.args[0], node.args[0])
            continue
        current = with_children(node, tuple(new.get(child, child) for child in children(node)))
        if isinstance(node, Call) and node in layers:
            layer = layers[node]
            current = _switched(layer, node, current, _switch(switches, layer.number))
            if with_bfloat16:
                current = _in_bfloat16(current, _switch(switches, len(layers) + layer.number))
        new[node] = current
    return calibrated.with_function("main", Function((*main.params, switches), new[main.body], main.attrs))


def _switch(switches: Var, number: int) -> Expr:
    return call("Gather", switches, Constant(np.array(number, np.int64)))


def _switched(layer: HeavyLayer, marked: Call, plain: Expr, switch: Expr) -> Call:
    assert isinstance(plain, Call)
    mark = _mark_below(marked.args[0])
    quantised = call("QuantizeLinear", plain.args[0], *mark.args[1:3])
    data = call("Where", switch, call("DequantizeLinear", quantised, *mark.args[1:3]), plain.args[0])
    weight_mark = marked.args[1]
    assert isinstance(weight_mark, Call)
    scale = weight_mark.args[1]
    assert isinstance(scale, Constant)
    exact, axis = layer.weight.data, layer.weight_axis
    rounded = quantised_weight(exact, scale.data, axis) * along_axis(scale.data, axis, exact.ndim)
    weight = call("Where", switch, Constant(np.asarray(rounded, np.float32)), layer.weight)
    return _with_arguments(plain, data, weight)


def _in_bfloat16(plain: Call, switch: Expr) -> Call:
    """Return a layer whose input, weights and result are rounded to bfloat16 if a switch is on."""
    data, weight = (call("Where", switch, _rounded(argument), argument) for argument in plain.args[:2])
    result = _with_arguments(plain, data, weight)
    return call("Where", switch, _rounded(result), result)


def _rounded(value: Expr) -> Call:
    return call("Cast", call("Cast", value, to=_BFLOAT16), to=_FLOAT32)


def _with_arguments(layer: Call, data: Expr, weight: Expr) -> Call:
    result = typed(with_fields(layer, args=(data, weight, *layer.args[2:])))
    assert isinstance(result, Call)
    return result


def _mark_below(value: Expr) -> Call:
    """Return the annotation of a value, which stands before operators that only move elements."""
    while not is_annotation(value):
        assert isinstance(value, Call)
        value = value.args[0]
    assert isinstance(value, Call)
    return value


def layer_errors(calibrated: IRModule, inputs: InputSets, *, with_bfloat16: bool = False) -> LayerErrors:
    """Return the mean squared error of the outputs with each layer alone in a narrower type.

    It is a fraction of the power of an output, the largest of all outputs, and the mean over the input sets.

    Args:
        calibrated: Program with calibrated annotations of all its layers.
        inputs: Input sets, by parameter name.
        with_bfloat16: Whether errors in bfloat16 are measured as well.

    Raises:
        ExecutionError: No toolchain runs the program.
    """
    count = len(heavy_layers(top_level(calibrated["main"].body)))
    switched = 2 * count if with_bfloat16 else count
    errors = np.zeros(switched)
    with running_program(switched_program(calibrated, with_bfloat16=with_bfloat16)) as run:
        for arrays in inputs:
            expected = run({**arrays, SWITCHES: np.zeros(switched, np.bool_)})
            for number, switches in enumerate(np.eye(switched, dtype=np.bool_)):
                actual = run({**arrays, SWITCHES: switches})
                errors[number] += relative_error(expected, actual) ** 2 / len(inputs)
    return LayerErrors(tuple(map(float, errors[:count])), tuple(map(float, errors[count:])))


def layer_borders(calibrated: IRModule) -> tuple[tuple[int, int, int], ...]:
    """Return pairs of layers with only activations, moves, sums and pools between them, and elements there.

    Args:
        calibrated: Program with annotations of all its layers.
    """
    layers = heavy_layers(top_level(calibrated["main"].body))
    numbers: dict[Expr, int] = {layer.call: layer.number for layer in layers}
    return tuple(
        (first, layer.number, _elements(layer.call.args[0]))
        for layer in layers
        for first in _neighbours(layer.call.args[0], numbers)
    )


def _neighbours(value: Expr, numbers: Mapping[Expr, int]) -> list[int]:
    """Return the layers whose results are read without another layer between."""
    waiting, seen, neighbours = [value], set[Expr](), set[int]()
    while waiting:
        current = waiting.pop()
        if current in seen or not isinstance(current, Call) or not isinstance(current.op, Op):
            continue
        seen.add(current)
        if current in numbers:
            neighbours.add(numbers[current])
        elif is_annotation(current) or current.op.name in _PASSING:
            waiting += current.args
    return sorted(neighbours)


def _elements(value: Expr) -> int:
    own_type = value.checked_type
    assert isinstance(own_type, TensorType)
    return int(np.prod([dim if isinstance(dim, int) else 1 for dim in own_type.shape or ()]))
