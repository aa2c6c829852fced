"""Lower a graph of dynamo to ONNX once; its weights stay inputs, so that each set of weights can be bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import Dim

from intarsia.frontend.torch.export_module import export_module
from intarsia.frontend.torch.lower_program import LoweredProgram, lower_exported
from intarsia.frontend.torch.torch_importer import import_lowered
from intarsia.frontend.torch.training_mode import random_reasons
from intarsia.ir import IRModule
from intarsia.torch_compile.fallback import LeftToPyTorchError
from intarsia.torch_compile.graph_inputs import GraphInput, read_inputs
from intarsia.torch_compile.output_views import ResultPlan, plan_results


@dataclass(frozen=True, slots=True)
class LoweredGraph:
    """A graph as ONNX.

    Attributes:
        name: Name of the program.
        inputs: Inputs that the program has, in order.
        written: Inputs whose new values are the program's first results.
        results: Plan for the results of the graph, from the other results of the program.
        program: The program; weights are among its inputs.
        eager: Graph module of the same program, a function of its inputs.
    """

    name: str
    inputs: tuple[GraphInput, ...]
    written: tuple[GraphInput, ...]
    results: ResultPlan
    program: LoweredProgram
    eager: Any

    def bind(self, weights: Mapping[str, Any]) -> IRModule:
        """Import the program with some of its inputs as constants.

        Args:
            weights: Tensors by input name; constants use their memory.
        """
        tensors = {**self.program.weights, **weights}
        return import_lowered(self.program, self.name, shares_weights=True, weights=tensors)

    def compute(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the results of the program as PyTorch computes them, on copies of what it writes to.

        Args:
            arguments: Arguments of the graph's function.
        """
        written = {item.position: arguments[item.position].clone() for item in self.written}
        given = [written.get(item.position, arguments[item.position]) for item in self.inputs]
        with torch.no_grad():
            results = self.eager(*given)
        return [*(written[item.position] for item in self.written), *results]


def lower_graph(graph_module: Any, examples: Sequence[Any], name: str) -> LoweredGraph:
    """Lower a graph of dynamo.

    Args:
        graph_module: The graph; it is not changed.
        examples: Arguments of the first call.
        name: Name of the program.

    Raises:
        LeftToPyTorchError: Training mode, random numbers, or tensors that programs cannot take.
        UnsupportedModelError: The exporter cannot take an operator.
    """
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    inputs = read_inputs(placeholders, examples)
    results = plan_results(graph_module.graph)
    module, used = _computing_module(graph_module, results)
    inputs = [item for item in inputs if item.position in used]
    arguments = [_unmarked(examples[item.position]) for item in inputs]
    exported = export_module(_Interpreted(module), arguments, dynamic_shapes=(tuple(map(_dynamic, inputs)),))
    random = random_reasons(exported.graph_module)
    if random:
        raise LeftToPyTorchError(random[0], help="call model.eval() first, if that is dropout")
    program = lower_exported(exported, keeps_mutations=True)
    names = exported.graph_signature.user_inputs
    by_argument = dict(zip(names, inputs, strict=True))
    _rename_inputs(program.proto.graph, [item.name for item in inputs])
    written = tuple(by_argument[target] for target in program.mutated)
    return LoweredGraph(name, tuple(inputs), written, results, program, module)


class _Interpreted(torch.nn.Module):
    """A graph that is interpreted node by node, so that an export of it keeps the modules of its nodes."""

    def __init__(self, graph_module: Any) -> None:
        super().__init__()
        self._run = torch.fx.Interpreter(graph_module).run
        self.training = False

    def forward(self, *arguments: Any) -> Any:
        with torch.fx.traceback.preserve_node_meta():
            return self._run(*arguments)


def _computing_module(graph_module: Any, results: ResultPlan) -> tuple[Any, set[int]]:
    """Return a copy of a graph that returns the computed results, and positions of the inputs it uses."""
    graph = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    graph.graph_copy(graph_module.graph, copies)
    returned = [
        copies[node] if order is None else graph.call_method("permute", (copies[node], order))
        for node, order in zip(results.computed, results.orders, strict=True)
    ]
    graph.output(tuple(returned))
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    _read_sizes_from_tensors(graph, placeholders)
    used = set()
    for position, node in enumerate(placeholders):
        if node.users:
            used.add(position)
        else:
            graph.erase_node(node)
    return torch.fx.GraphModule(graph_module, graph), used


def _read_sizes_from_tensors(graph: Any, placeholders: Sequence[Any]) -> None:
    """Replace size inputs by sizes of tensors, so that the exporter sees which dimensions are equal."""
    sizes: dict[Any, tuple[Any, int]] = {}
    for node in placeholders:
        value = node.meta.get("example_value")
        for axis, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(size, torch.SymInt):
                sizes.setdefault(size.node.expr, (node, axis))
    last = placeholders[-1] if placeholders else None
    for node in placeholders:
        value = node.meta.get("example_value")
        if isinstance(value, torch.SymInt) and value.node.expr in sizes:
            tensor, axis = sizes[value.node.expr]
            with graph.inserting_after(last):
                size = graph.call_method("size", (tensor, axis))
            size.meta["example_value"] = value
            node.replace_all_uses_with(size)


def _unmarked(example: Any) -> Any:
    """A tensor over the same memory, because torch.export removes marks of mark_dynamic that dynamo reads."""
    return example.detach() if isinstance(example, torch.Tensor) else example


def _dynamic(item: GraphInput) -> Any:
    if not item.is_tensor:
        return Dim.DYNAMIC
    return dict.fromkeys(item.dynamic_axes, Dim.AUTO)


def _rename_inputs(graph: Any, names: Sequence[str]) -> None:
    """Rename the inputs of an ONNX graph, in order."""
    from onnx import GraphProto

    renamed = {item.name: name for item, name in zip(graph.input, names, strict=False)}  # constants follow

    def rename(inner: GraphProto) -> None:
        for node in inner.node:
            for position, name in enumerate(node.input):
                node.input[position] = renamed.get(name, name)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    rename(attribute.g)

    for item in graph.input:
        item.name = renamed.get(item.name, item.name)
    rename(graph)
