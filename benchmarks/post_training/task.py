"""A model with its inputs and the limits of the comparison."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy.typing as npt
import onnx

from intarsia.cli.arguments.model import ModelArgument
from intarsia.frontend.onnx import to_onnx
from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.tune.quantise.calibration_inputs import CalibrationInputs, read_calibration

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Task:
    """A model, its inputs, and the limits of the comparison.

    Attributes:
        name: Name of the model.
        module: The model.
        model: The model as ONNX in float32.
        used: Inputs to calibrate on.
        held_back: Inputs to measure errors on.
        given: Arguments of the command line.
        folder: Folder for files.
    """

    name: str
    module: IRModule
    model: onnx.ModelProto
    used: Sequence[Mapping[str, Array]]
    held_back: Sequence[Mapping[str, Array]]
    given: argparse.Namespace
    folder: Path

    @property
    def path(self) -> Path:
        """File of the model."""
        return self.folder / "model.onnx"

    @property
    def has_attention(self) -> bool:
        """Whether it is a transformer, by its operators."""
        operators = {node.op_type for node in self.model.graph.node}
        return "Softmax" in operators and "LayerNormalization" in operators

    def kept(self, name: str, write: Callable[[Path], object]) -> Path:
        """Return a file of the folder, which is written if it is not there yet.

        Args:
            name: Name of the file.
            write: Function that writes it to a path; an interrupted one leaves no file.
        """
        path = self.folder / name
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                write(Path(folder) / name)
                for file in sorted(Path(folder).iterdir(), key=lambda file: file.name == name):
                    file.rename(self.folder / file.name)
        return path


def read_task(name: str, given: argparse.Namespace, folder: Path) -> Task:
    """Import a model, and write it as the engines read it."""
    module = ModelArgument.parse(name).import_model({})
    if given.calibration:
        data = read_calibration(Path(given.calibration), module["main"])
    else:
        data = CalibrationInputs(tuple(random_inputs(module["main"], seed) for seed in range(given.sets)))
    used, held_back = data.split()
    count = min(len(used.inputs), len(held_back.inputs))
    model = to_onnx(module)
    task = Task(name, module, model, used.inputs[:count], held_back.inputs[:count], given, folder)
    task.kept(task.path.name, lambda after: onnx.save(model, after))
    return task
