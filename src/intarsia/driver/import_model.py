"""Import what `tune` is given: a file or message of ONNX, a model of PyTorch, or a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy.typing as npt

from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.torch.torch_package import is_torch_model
from intarsia.frontend.zoo import build_model
from intarsia.frontend.zoo_name import zoo_name
from intarsia.ir import IRModule
from intarsia.support.errors import UsageError


@dataclass(frozen=True, slots=True)
class TuneModel:
    """A program to tune.

    Attributes:
        module: The program.
        inputs: Arrays by parameter name, as far as they are given.
    """

    module: IRModule
    inputs: Mapping[str, npt.NDArray[Any]]


def import_model(
    model: Any,
    shapes: Mapping[str, Sequence[int | str]] | None,
    inputs: Mapping[str, npt.NDArray[Any]] | None,
    example_inputs: Any,
    dynamic_shapes: Any,
) -> TuneModel:
    """Return a model as a program, with input arrays.

    Args:
        model: Model of ONNX or PyTorch, or a program.
        shapes: Static shapes of inputs of an ONNX model.
        inputs: Input arrays by name.
        example_inputs: Inputs of a model of PyTorch; they are measured on where `inputs` has none.
        dynamic_shapes: Dynamic dimensions of a model of PyTorch.

    Raises:
        UsageError: Arguments for a model of another kind are given.
        ModelError: The model is invalid or unsupported.
    """
    given = {} if inputs is None else inputs
    if not is_torch_model(model):
        if example_inputs is not None or dynamic_shapes is not None:
            raise UsageError(
                "example_inputs and dynamic_shapes are for models of PyTorch", help="give arrays as inputs="
            )
        return TuneModel(model if isinstance(model, IRModule) else from_onnx(_file(model), shapes), given)
    if shapes is not None:
        raise UsageError(
            "shapes= is for ONNX models; a model of PyTorch has the shapes of its example inputs",
            help="give example_inputs of these shapes",
        )
    from intarsia.frontend.torch.torch_importer import import_torch

    imported = import_torch(model, example_inputs, dynamic_shapes=dynamic_shapes)
    return TuneModel(imported.module, {**imported.inputs, **given})


def _file(model: Any) -> Any:
    """Return a model of the zoo for "zoo:NAME", unless that is a file; other models as they are."""
    name = zoo_name(model) if isinstance(model, str) else None
    return model if name is None else build_model(name)


def given_name(model: Any) -> str:
    """Return the name of a model's file, or of the zoo; "" for a model that is an object."""
    if not isinstance(model, str | PathLike):
        return ""
    name = zoo_name(model) if isinstance(model, str) else None
    return Path(model).stem if name is None else name
