"""`from_torch`: a module or program of PyTorch in, a program out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from intarsia.frontend.onnx.import_limits import ImportLimits, current_limits
from intarsia.frontend.onnx.importer import NOTES, import_notes, import_raw
from intarsia.frontend.onnx.read_model import with_arrays
from intarsia.frontend.torch.torch_package import require_torch
from intarsia.ir import Attrs, AttrValue, Function, IRModule, with_fields, with_module_fields
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.frontend.torch.lower_program import LoweredProgram


def from_torch(
    model: Any,
    example_inputs: Any = None,
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    limits: ImportLimits | None = None,
) -> IRModule:
    """Import a model of PyTorch by torch.export and PyTorch's own ONNX exporter.

    Args:
        model: A torch.nn.Module in evaluation mode, an ExportedProgram, or an ONNXProgram.
        example_inputs: Inputs of the module: a tensor, a sequence of inputs by position, or a mapping of
            inputs by name. Their shapes are those of the program, except dynamic dimensions.
        example_kwargs: Further inputs of the module, by name.
        dynamic_shapes: Dynamic dimensions, as torch.export.export takes them.
        limits: Maximum numbers of elements of a value and of nodes, as for `from_onnx`.

    Returns:
        A module as `from_onnx` returns it. Spans name modules ("layers.3.attn/linear") and parameters
        ("layers.3.attn.weight"). Weights are copied once: later changes of the model do not reach it.

    Raises:
        UsageError: PyTorch is missing, a layer is in training mode, or example inputs are missing.
        UnsupportedModelError: torch.export or the exporter cannot take the model; the message names the
            module.
    """
    return import_torch(
        model, example_inputs, example_kwargs=example_kwargs, dynamic_shapes=dynamic_shapes, limits=limits
    ).module


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """A model of PyTorch as a program.

    Attributes:
        module: The program.
        inputs: Example inputs as arrays, by parameter name; empty for an ONNXProgram.
    """

    module: IRModule
    inputs: dict[str, Any]


def import_torch(
    model: Any,
    example_inputs: Any = None,
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    limits: ImportLimits | None = None,
) -> ImportedModel:
    """Import a model as `from_torch` does, with its example inputs."""
    torch = require_torch()
    from intarsia.frontend.torch.call_signature import example_arrays, result_names
    from intarsia.frontend.torch.export_module import export_module, refuse_training
    from intarsia.frontend.torch.lower_program import lower_exported, lower_onnx

    args, kwargs = example_arguments(example_inputs, example_kwargs)
    if isinstance(model, torch.onnx.ONNXProgram):
        return ImportedModel(import_lowered(lower_onnx(model, optimizes=False), "model", limits), {})
    if isinstance(model, torch.export.ExportedProgram):
        exported, name = model, "model"
        refuse_training(exported)
    elif isinstance(model, torch.nn.Module):
        if not args and not kwargs and example_inputs is None:
            raise UsageError(
                "from_torch needs example inputs for a module",
                help="give the inputs of one call: from_torch(model, (x,))",
            )
        exported, name = export_module(model, args, kwargs, dynamic_shapes), type(model).__name__
    else:
        raise UsageError(
            f"from_torch takes a torch.nn.Module, an ExportedProgram or an ONNXProgram, "
            f"found {type(model).__name__}"
        )
    lowered = lower_exported(exported)
    module = _with_output_names(import_lowered(lowered, name, limits), result_names(exported))
    names = [param.name for param in module["main"].params]
    arrays = example_arrays(exported)
    inputs = dict(zip(names, arrays, strict=True)) if len(names) == len(arrays) else {}
    return ImportedModel(_with_note(module, lowered.mutated), inputs)


def example_arguments(
    example_inputs: Any, example_kwargs: Mapping[str, Any] | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the example inputs by position and by name."""
    kwargs = dict(example_kwargs or {})
    if example_inputs is None:
        return (), kwargs
    if isinstance(example_inputs, Mapping):
        return (), {**example_inputs, **kwargs}
    return (tuple(example_inputs) if isinstance(example_inputs, Sequence) else (example_inputs,)), kwargs


def import_lowered(
    lowered: LoweredProgram,
    name: str,
    limits: ImportLimits | None = None,
    *,
    shares_weights: bool = False,
    weights: Mapping[str, Any] | None = None,
) -> IRModule:
    """Import a lowered program.

    Args:
        lowered: The program; its message may be imported again.
        name: Name of the model.
        limits: Limits on its size.
        shares_weights: Whether constants may use the memory of the tensors.
        weights: Tensors by input name in place of those of the program.
    """
    from onnx import ModelProto

    from intarsia.frontend.torch.tensors import weight_array

    limits = limits or current_limits()
    tensors = lowered.weights if weights is None else weights
    arrays = {key: weight_array(tensor, is_shared=shares_weights) for key, tensor in tensors.items()}
    proto = ModelProto()
    proto.CopyFrom(lowered.proto)
    proto.graph.name = name
    return import_raw(with_arrays(proto, arrays, name, limits), {}, limits)


def _with_note(module: IRModule, mutated: Sequence[str]) -> IRModule:
    """Note that the program has no side effects, although the model has."""
    if not mutated:
        return module
    note = f"the model writes to {', '.join(mutated[:3])}; its program leaves them as they are"
    return with_module_fields(module, attrs=Attrs({**module.attrs, NOTES: (*import_notes(module), note)}))


def _output_names(main: Function) -> tuple[AttrValue, ...]:
    names = main.attrs["output_names"]
    assert isinstance(names, tuple)
    return names


def _with_output_names(module: IRModule, names: Sequence[str]) -> IRModule:
    main = module["main"]
    if len(names) != len(set(names)) or len(names) != len(_output_names(main)):
        return module
    renamed = with_fields(main, attrs=Attrs({**main.attrs, "output_names": tuple(names)}))
    return with_module_fields(module, functions={**module.functions, module.global_var("main"): renamed})
