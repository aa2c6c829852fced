"""A graph as a module of torch: its operators in order, its constants as buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import nn

from intarsia.runtime.kernel import Array, KernelSource
from intarsia.toolchain.external_weights import weight_of
from intarsia.toolchain.onnx_port import input_ports, output_ports
from intarsia.toolchain.torch.operators import FIXED_INPUTS, OPERATORS
from intarsia.toolchain.torch.rule import Computation, NodeForm, Tensor, refusal
from intarsia.toolchain.torch.types import as_tensor, torch_dtype_of

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


@dataclass(frozen=True, slots=True)
class _Operation:
    """A node, ready to be computed; `ended` are values that no later node reads."""

    run: Computation
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ended: tuple[str, ...]


class TorchGraph(nn.Module):  # type: ignore[misc]  # torch is an extra that is not there
    """Takes and gives the tensors of a graph; some results may share memory with inputs and weights.

    Args:
        graph: Its inputs and outputs are tensors.
        source: Has the weights.
        place: The device of torch on which it runs.

    Raises:
        CompileError: An operator has no rule, or a form that its rule does not cover.
    """

    def __init__(self, graph: GraphProto, source: KernelSource, torch_device: Any) -> None:
        super().__init__()
        constants = _constants(graph, source)
        self._operations = _operations(graph, constants)
        self._inputs, self._outputs = (
            tuple(port.name for port in ports(graph)) for ports in (input_ports, output_ports)
        )
        self._buffer_names: dict[str, str] = {}
        for index, (name, array) in enumerate(constants.items()):
            self._buffer_names[name] = f"constant_{index}"  # torch allows no dots in names
            self.register_buffer(self._buffer_names[name], as_tensor(array).to(torch_device))

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        """The results."""
        values: dict[str, Any] = {name: self._buffers[buffer] for name, buffer in self._buffer_names.items()}
        values |= {"": None, **dict(zip(self._inputs, inputs, strict=True))}
        for operation in self._operations:
            made = operation.run(*[values[name] for name in operation.inputs])
            several = made if isinstance(made, (tuple, list)) else (made,)
            values.update(zip(operation.outputs, several, strict=False))
            for name in operation.ended:
                del values[name]
        return [values[name] for name in self._outputs]


def _constants(graph: GraphProto, source: KernelSource) -> dict[str, Array]:
    """Initializers, and results of Constant nodes.

    Raises:
        CompileError: An initializer has an element type that torch lacks.
    """
    from onnx import numpy_helper

    arrays: dict[str, Array] = {}
    for tensor in graph.initializer:
        external = tensor.data_location == tensor.EXTERNAL
        arrays[tensor.name] = weight_of(tensor, source.weights) if external else numpy_helper.to_array(tensor)
        torch_dtype_of(arrays[tensor.name].dtype)
    for node in graph.node:
        if node.op_type == "Constant":
            values = [item for item in node.attribute if item.name == "value"]
            if not values:
                raise refusal("operator 'Constant' without a tensor")
            arrays[node.output[0]] = numpy_helper.to_array(values[0].t)
    return arrays


def _operations(graph: GraphProto, constants: dict[str, Array]) -> list[_Operation]:
    nodes = [node for node in graph.node if node.op_type != "Constant"]
    kept = {*constants, *(value.name for value in graph.output), ""}
    last = {name: index for index, node in enumerate(nodes) for name in (*node.output, *node.input)}
    return [
        _Operation(
            _computation(node, constants),
            tuple(node.input),
            tuple(node.output),
            tuple(name for name in {*node.input, *node.output} if last[name] == index and name not in kept),
        )
        for index, node in enumerate(nodes)
    ]


def _computation(node: NodeProto, constants: dict[str, Array]) -> Computation:
    from onnx import helper

    name = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    rule = None if node.domain else OPERATORS.get(name)
    if rule is None:
        raise refusal(f"operator {name!r} has no rule")
    fixed = tuple(constants.get(item) for item in node.input)
    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    wanted = sum(1 for item in node.output if item)
    form = NodeForm(name, attributes, fixed, max(wanted, 1), tuple(map(bool, node.input)))
    for position in FIXED_INPUTS.get(name, ()):
        known = position >= len(fixed) or not node.input[position] or fixed[position] is not None
        form.require(known, f"with an input {position} that is only known at run time")
    return rule(form)
