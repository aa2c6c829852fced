"""Inputs of a graph of dynamo: weights, other tensors, and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from intarsia.frontend.torch.node_names import attribute_path
from intarsia.support.free_names import NameSupply
from intarsia.torch_compile.fallback import LeftToPyTorchError

_TENSOR_TYPES: Final = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
_STATIC: Final = "_dynamo_static_input_type"
"""Mark of dynamo on parameters and buffers of modules."""


@dataclass(frozen=True, slots=True)
class GraphInput:
    """An input of a graph.

    Attributes:
        position: Position among the arguments of the graph's function.
        name: Name in the program: the path of a parameter, or dynamo's name.
        is_tensor: Whether it is a tensor; otherwise an integer.
        is_weight: Whether it is a parameter or buffer of a module, which rarely changes.
        dynamic_axes: Axes of a tensor whose sizes differ between calls.
    """

    position: int
    name: str
    is_tensor: bool
    is_weight: bool = False
    dynamic_axes: tuple[int, ...] = ()


def read_inputs(placeholders: Sequence[Any], examples: Sequence[Any]) -> list[GraphInput]:
    """Return the inputs of a graph, in order.

    Args:
        placeholders: Placeholders of the graph.
        examples: Arguments of the first call.

    Raises:
        LeftToPyTorchError: One is on another device than the CPU, requires a gradient, or has a type without
            an equivalent.
    """
    supply = NameSupply()
    return [
        _read_input(position, node, example, supply)
        for position, (node, example) in enumerate(zip(placeholders, examples, strict=True))
    ]


def _read_input(position: int, node: Any, example: Any, supply: NameSupply) -> GraphInput:
    source = getattr(node, "_dynamo_source", None)
    path = attribute_path(_source_text(source)) if source is not None else ""
    if isinstance(example, int) and not isinstance(example, bool):
        return GraphInput(position, supply.fresh(node.name), is_tensor=False)
    if type(example) not in _TENSOR_TYPES:
        raise LeftToPyTorchError(
            f"the input {path or node.name} is of type {type(example).__name__}, expected a plain tensor"
        )
    _refuse(path or node.name, example)
    is_weight = _is_weight(node, example)
    fake = node.meta.get("example_value", example)
    axes = tuple(axis for axis, size in enumerate(fake.shape) if isinstance(size, torch.SymInt))
    return GraphInput(
        position, supply.fresh(path if is_weight and path else node.name), True, is_weight, axes
    )


def _refuse(name: str, tensor: Any) -> None:
    if tensor.device.type != "cpu":
        raise LeftToPyTorchError(
            f"the tensor {name} is on the device {tensor.device}, expected the CPU", help="call model.cpu()"
        )
    if tensor.layout is not torch.strided or tensor.dtype.is_complex or tensor.is_quantized:
        raise LeftToPyTorchError(
            f"the tensor {name} is {tensor.layout} of {tensor.dtype}, which is not supported"
        )
    if tensor.requires_grad and torch.is_grad_enabled():
        raise LeftToPyTorchError(
            f"gradients are enabled, and {name} requires one: programs are for inference",
            help="call the model under torch.inference_mode() or torch.no_grad()",
        )


def _is_weight(node: Any, tensor: Any) -> bool:
    """Whether a tensor can be a constant: dynamo marks it, and its changes can be seen."""
    marks = node.meta.get("tensor_dict") or {}
    is_static = isinstance(tensor, torch.nn.Parameter) or _STATIC in marks
    return is_static and not tensor.is_inference()  # inference tensors do not count their versions


def _source_text(source: Any) -> str:
    name = source.name
    return str(name() if callable(name) else name)  # a method in releases before 2.10
