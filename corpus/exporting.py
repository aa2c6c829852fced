"""Export PyTorch modules to ONNX with either exporter."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch

from corpus.draw import Draw
from corpus.recipe import BuiltModel

Array = npt.NDArray[Any]

_SPREAD = 0.05
"""Standard deviation of the noise that is added to parameters with a constant initial value."""


def export(
    draw: Draw,
    module: Any,
    inputs: Mapping[str, Array],
    outputs: Sequence[str],
    *,
    opset: int,
    script: bool = False,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    half: Any = None,
) -> BuiltModel:
    """Export a module with random weights.

    Args:
        draw: Choices of the recipe.
        module: Module to export; its forward method takes the inputs in order.
        inputs: Example inputs by name.
        outputs: Names of the outputs.
        opset: Opset of the file.
        script: Whether the older exporter (tracing or TorchScript) is used.
        dynamic: Names of symbolic axes by input name and axis.
        half: Element type of weights and float inputs; None for float32.
    """
    if isinstance(module, torch.nn.Module) and not isinstance(module, torch.jit.ScriptModule):
        randomize(module, draw.seed)
    if half is not None:
        module = module.to(half)
    module.eval()
    arguments = tuple(_tensor(array, half) for array in inputs.values())
    names = {"input_names": list(inputs), "output_names": list(outputs), "opset_version": opset}
    with torch.no_grad():
        proto = (_export_by_script if script else _export_by_dynamo)(module, arguments, names, dynamic or {})
    graph_inputs = {info.name for info in proto.graph.input}  # exporters drop unused inputs
    arrays = {
        name: _array(tensor) for name, tensor in zip(inputs, arguments, strict=True) if name in graph_inputs
    }
    return BuiltModel(proto, arrays)


def randomize(module: Any, seed: int) -> None:
    """Make all weights random, also those of normalisations: constants would hide defects."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point() and parameter.numel() > 1 and _is_constant(parameter):
                parameter.add_(_SPREAD * torch.randn(parameter.shape, generator=generator))
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.add_(_SPREAD * torch.randn(buffer.shape, generator=generator))
            if name.endswith("running_var"):
                buffer.mul_(0.5 + torch.rand(buffer.shape, generator=generator))


class Positional(torch.nn.Module):
    """Adapter of a module with keyword arguments to positional arguments and selected outputs."""

    def __init__(
        self, module: Any, names: Sequence[str], pick: Callable[[Any], Any], **constants: Any
    ) -> None:
        super().__init__()
        self.module, self.names, self.pick, self.constants = module, tuple(names), pick, constants

    def forward(self, *arguments: Any) -> Any:
        return self.pick(self.module(**dict(zip(self.names, arguments, strict=True)), **self.constants))


def _export_by_script(module: Any, arguments: Any, names: dict[str, Any], dynamic: Mapping[str, Any]) -> Any:
    file = io.BytesIO()
    axes = {name: dict(numbered) for name, numbered in dynamic.items()}
    torch.onnx.export(module, arguments, file, dynamo=False, dynamic_axes=axes or None, **names)
    return onnx.load_from_string(file.getvalue())


def _export_by_dynamo(module: Any, arguments: Any, names: dict[str, Any], dynamic: Mapping[str, Any]) -> Any:
    shapes: Any = None
    if dynamic:
        sizes = {text: torch.export.Dim(text) for axes in dynamic.values() for text in axes.values()}
        shapes = tuple(
            {axis: sizes[text] for axis, text in dynamic.get(name, {}).items()}
            for name in names["input_names"]
        )
        if any(p.kind == p.VAR_POSITIONAL for p in _parameters(module)):
            shapes = (shapes,)
    program = torch.onnx.export(
        module, arguments, dynamo=True, verbose=False, dynamic_shapes=shapes, optimize=True, **names
    )
    return program.model_proto


def _parameters(module: Any) -> list[Any]:
    import inspect

    return list(inspect.signature(module.forward).parameters.values())


def _is_constant(parameter: Any) -> bool:
    return bool((parameter == parameter.flatten()[0]).all())


def _tensor(array: Array, half: Any) -> Any:
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.to(half) if half is not None and tensor.is_floating_point() else tensor


def _array(tensor: Any) -> Array:
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        return np.asarray(tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return np.asarray(tensor.numpy())
