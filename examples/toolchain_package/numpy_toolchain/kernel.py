"""Kernels of the toolchain: a list of NumPy calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.target import Target
from intarsia.toolchain.delivery import deliver_all
from intarsia.toolchain.external_weights import weight_of
from intarsia.toolchain.onnx_port import input_ports, output_ports, parse_model

from .operators import ELEMENTWISE, OPERATORS
from .options import REUSE_BUFFERS

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

_TYPES: Final = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True, slots=True)
class Step:
    """One NumPy call.

    Attributes:
        operator: Name of the operator.
        operands: Names of the values that it reads.
        result: Name of the value that it computes.
        unread: Names of values of earlier steps that are dead after this one.
        reusable: Names of the values of `unread` that the result may overwrite.
    """

    operator: str
    operands: tuple[str, ...]
    result: str
    unread: tuple[str, ...]
    reusable: tuple[str, ...]


class NumpyKernel:
    """Steps in order, and the weights that they read.

    Args:
        source: Source of the kernel: the exported function.
        inputs: Names of the inputs, in order.
        results: Names of the results, in order.
        weights: Constants by name.
        steps: NumPy calls, in order.
    """

    def __init__(
        self,
        source: KernelSource,
        inputs: Sequence[str],
        results: Sequence[str],
        weights: Mapping[str, Array],
        steps: Sequence[Step],
    ) -> None:
        self.source = source
        self._inputs = tuple(inputs)
        self._results = tuple(results)
        self._weights = dict(weights)
        self._steps = tuple(steps)

    def blob(self) -> bytes | None:
        """Return None: making the steps from the source is fast."""
        return None

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """Run the steps; see `intarsia.runtime.kernel.Kernel.run`."""
        values = {**self._weights, **dict(zip(self._inputs, cast("Sequence[Array]", inputs), strict=True))}
        output_arrays = dict(zip(self._results, outputs, strict=True))
        try:
            with np.errstate(all="ignore"):  # infinities and NaNs are valid results
                for step in self._steps:
                    values[step.result] = _compute(step, values, output_arrays.get(step.result))
                    for name in step.unread:
                        del values[name]
        except ValueError as error:  # NumPy raises it for shapes that do not match
            raise ExecutionError(f"numpy failed: {error}") from error
        return deliver_all([values[name] for name in self._results], outputs)


def load_kernel(source: KernelSource) -> NumpyKernel:
    """Return the kernel of a source.

    Raises:
        CompileError: The toolchain does not support an operator or an element type.
    """
    graph = parse_model(source, "numpy").graph
    ports = (*input_ports(graph), *output_ports(graph))
    weights = {tensor.name: _weight(tensor, source.weights) for tensor in graph.initializer}
    types = {port.name: port.dtype for port in ports} | {name: w.dtype for name, w in weights.items()}
    for name, dtype in types.items():
        if dtype not in _TYPES:
            raise CompileError(f"numpy cannot compile this: {name!r} is {dtype or 'no tensor'}")
    for node in graph.node:
        if node.domain or node.op_type not in OPERATORS:
            raise CompileError(f"numpy cannot compile this: it lacks operator {node.op_type!r}")
    target = Target(source.target)
    reuses = target.option("optimize", 1) == 1 and target.option(REUSE_BUFFERS.name, True)
    inputs = [port.name for port in input_ports(graph)]
    results = [port.name for port in output_ports(graph)]
    return NumpyKernel(source, inputs, results, weights, _steps(graph, set(results), reuses=reuses))


def _steps(graph: GraphProto, results: set[str], *, reuses: bool) -> list[Step]:
    last_reader = {name: index for index, node in enumerate(graph.node) for name in node.input}
    temporary = {node.output[0] for node in graph.node} - results
    return [_step(node, index, last_reader, temporary, reuses) for index, node in enumerate(graph.node)]


def _step(
    node: NodeProto, index: int, last_reader: Mapping[str, int], temporary: set[str], reuses: bool
) -> Step:
    operands = dict.fromkeys(node.input)
    unread = tuple(name for name in operands if name in temporary and last_reader[name] == index)
    reusable = unread if reuses and node.op_type in ELEMENTWISE else ()
    return Step(node.op_type, tuple(node.input), node.output[0], unread, reusable)


def _compute(step: Step, values: Mapping[str, Array], output: Array | None) -> Array:
    """Compute a step into the output array, a dead operand, or a new array."""
    operands = [values[name] for name in step.operands]
    compute = ELEMENTWISE.get(step.operator)
    if compute is None:
        return np.asarray(np.matmul(*operands))
    shape, dtype = np.broadcast_shapes(*(operand.shape for operand in operands)), operands[0].dtype
    for array in (output, *(values[name] for name in step.reusable)):
        if array is not None and array.shape == shape and array.dtype == dtype:
            compute(*operands, out=array)
            return array
    out = np.empty(shape, dtype)
    compute(*operands, out=out)
    return out


def _weight(tensor: TensorProto, weights: Mapping[str, Array]) -> Array:
    from onnx import TensorProto, numpy_helper

    if tensor.data_location == TensorProto.EXTERNAL:
        return weight_of(tensor, weights)
    array: Array = numpy_helper.to_array(tensor)
    return array
