"""What torch compiles to: the operators of a graph in order, each a call of torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from intarsia.runtime.kernel import Array, Kernel, KernelSource, Value
from intarsia.support.errors import ExecutionError, UsageError
from intarsia.target import Target
from intarsia.toolchain.delivery import deliver
from intarsia.toolchain.external_weights import weight_of
from intarsia.toolchain.onnx_port import input_ports, output_ports, parse_model
from intarsia.toolchain.package import exception_text
from intarsia.toolchain.torch_operators import FIXED_INPUTS, OPERATORS
from intarsia.toolchain.torch_rule import Computation, NodeForm, Tensor, refusal
from intarsia.toolchain.torch_types import as_tensor, torch_dtype_of

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


@dataclass(frozen=True, slots=True)
class _Operation:
    """A node, ready to be computed; `ended` are values that nobody needs afterwards."""

    run: Computation
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ended: tuple[str, ...]


def load_kernel(source: KernelSource) -> Kernel:
    """The kernel of a source.

    Raises:
        CompileError: An operator has no rule, or a form that its rule does not cover.
    """
    graph = parse_model(source, "torch").graph
    constants = _constants(graph, source)
    for port in (*input_ports(graph), *output_ports(graph)):
        if port.dtype is None:
            raise refusal(f"{port.name!r} is no tensor")
        torch_dtype_of(port.dtype)
    operations = _operations(graph, constants)
    target = Target(source.target)
    place = place_of(target)
    tensors = {name: as_tensor(array).to(place) for name, array in constants.items()}
    inputs, outputs = (tuple(port.name for port in ports(graph)) for ports in (input_ports, output_ports))
    threads = target.option("threads")
    count = threads if isinstance(threads, int) else 0
    return TorchKernel(source, operations, tensors, inputs, outputs, count)


def place_of(target: Target) -> Any:
    """Where the tensors of a target's kernels are: a device of torch."""
    return torch.device(target.kind)


class TorchKernel:
    """Calls the operators; on the CPU it takes and gives arrays, elsewhere tensors of its device."""

    def __init__(
        self,
        source: KernelSource,
        operations: Sequence[_Operation],
        constants: dict[str, Tensor],
        inputs: Sequence[str],
        outputs: Sequence[str],
        threads: int,
    ) -> None:
        self.source = source
        self._operations = operations
        self._constants: dict[str, Tensor] | None = constants
        self._inputs, self._outputs, self._threads = inputs, outputs, threads

    def blob(self) -> bytes | None:
        """None: it is quickly made from its source."""
        return None

    def close(self) -> None:
        """Let go of the weights."""
        self._constants = None

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`."""
        given = [as_tensor(cast("Array", value)) for value in inputs]
        found = self.compute(given)
        arrays = [
            tensor.numpy() if output is not None else np.array(tensor.numpy(), order="C")
            for tensor, output in zip(found, outputs, strict=True)
        ]
        return [deliver(array, output) for array, output in zip(arrays, outputs, strict=True)]

    def compute(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The results for tensors on the kernel's device; some may share memory with inputs and weights.

        Raises:
            ExecutionError: An operator failed.
            UsageError: The kernel is closed.
        """
        if self._constants is None:
            raise UsageError("the kernel is closed")
        if self._threads and torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
        values: dict[str, Any] = {"": None, **self._constants, **dict(zip(self._inputs, inputs, strict=True))}
        try:
            with torch.inference_mode():
                for operation in self._operations:
                    made = operation.run(*(values[name] for name in operation.inputs))
                    several = made if isinstance(made, (tuple, list)) else (made,)
                    values.update(zip(operation.outputs, several, strict=False))
                    for name in operation.ended:
                        del values[name]
        except Exception as error:  # torch raises whatever its operators do
            raise ExecutionError(f"torch failed: {exception_text(error)}") from error
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
    form = NodeForm(name, attributes, fixed, max(wanted, 1))
    for position in FIXED_INPUTS.get(name, ()):
        known = position >= len(fixed) or not node.input[position] or fixed[position] is not None
        form.require(known, f"with an input {position} that is only known at run time")
    return rule(form)
