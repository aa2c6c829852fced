"""Workloads in folders: what worker processes read, constants by memory map."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.measure.gate import Gate
from intarsia.measure.inputs import random_inputs
from intarsia.measure.measure_input import Workload
from intarsia.measure.tolerance import Tolerance
from intarsia.runtime.safetensors_file import StoredTensor, read_tensors, stored, write_tensors
from intarsia.support.files import written_whole

Array = npt.NDArray[Any]

_PROGRAM: Final = "program.txt"
_LIST: Final = "workload.json"
_TENSORS: Final = "tensors.safetensors"


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadFolder:
    """What a worker needs of a workload.

    Attributes:
        path: The folder; arrays are mapped from it, so that workers share them and nothing is pickled.
    """

    path: Path

    @classmethod
    def write(cls, workload: Workload, parent: Path, seed: int = 0) -> Self:
        """Write a workload below a folder, with inputs and reference result, unless it is there already.

        Args:
            workload: Its special inputs are used; other inputs are random.
            parent: Holds one folder for each workload, named by its digest.
            seed: Of the random inputs.

        Raises:
            UsageError: A random input has a symbolic shape.
            ExecutionError: Not even the reference computes the program.
            OutputError: The folder cannot be written.
        """
        folder = cls(parent / f"{workload.digest}-{seed}")
        if folder.path.exists():
            return folder
        inputs = {**random_inputs(workload.module["main"], seed), **workload.special_inputs}
        gate = Gate.for_module(workload.module, inputs)
        program = print_module(workload.module)
        tensors = {
            **{f"constant{number}": array for number, array in enumerate(program.constants)},
            **{f"input:{name}": array for name, array in inputs.items()},
            **{f"expected{number}": array for number, array in enumerate(gate.expected)},
        }
        description = {
            "tensors": [asdict(stored(name, array)) for name, array in tensors.items()],
            "outputs": gate.names,
            "tolerances": [asdict(tolerance) for tolerance in gate.tolerances],
            "reference": gate.reference,
        }
        with written_whole(folder.path) as temporary:
            temporary.mkdir()
            (temporary / _PROGRAM).write_text(program.text)
            (temporary / _LIST).write_text(json.dumps(description))
            with (temporary / _TENSORS).open("wb") as file:
                write_tensors(file, tensors)
        return folder

    def module(self) -> IRModule:
        """The program."""
        tensors = self._tensors("constant")
        constants = [tensors[f"constant{number}"] for number in range(len(tensors))]
        return parse_module((self.path / _PROGRAM).read_text(), constants)

    def inputs(self) -> dict[str, Array]:
        """The arrays to run the program on, by parameter name."""
        return {name.removeprefix("input:"): array for name, array in self._tensors("input:").items()}

    def gate(self) -> Gate:
        """The reference result."""
        description = self._description()
        tensors = self._tensors("expected")
        expected = tuple(tensors[f"expected{number}"] for number in range(len(tensors)))
        tolerances = tuple(Tolerance(**item) for item in description["tolerances"])
        return Gate(tuple(description["outputs"]), expected, tolerances, description["reference"])

    def _description(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / _LIST).read_text())
        return found

    def _tensors(self, prefix: str) -> Mapping[str, Array]:
        listed: Sequence[Mapping[str, Any]] = self._description()["tensors"]
        wanted = {
            item["name"]: StoredTensor(item["name"], item["dtype"], tuple(item["shape"]))
            for item in listed
            if item["name"].startswith(prefix)
        }
        path = self.path / _TENSORS
        return read_tensors(np.memmap(path, np.uint8, "r"), wanted, path.name)
