"""Workloads in folders: what worker processes read, constants by memory map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy.typing as npt

from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.measure.array_files import read_arrays, read_facts, write_arrays
from intarsia.measure.constant_store import ConstantStore, large_constants, stored_constant
from intarsia.measure.gate import Gate
from intarsia.measure.measure_input import Workload
from intarsia.measure.tolerance import Tolerance
from intarsia.support.files import written_whole

Array = npt.NDArray[Any]

_PROGRAM: Final = "program.txt"
_GIVEN: Final = "given"
_EXPECTED: Final = "expected"


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadFolder:
    """What a worker needs of a workload.

    Attributes:
        path: The folder; arrays are mapped from it, so that workers share them and nothing is pickled.
    """

    path: Path

    @classmethod
    def write(
        cls,
        workload: Workload,
        parent: Path,
        seed: int = 0,
        add_reference: Callable[[Path], object] | None = None,
        store: ConstantStore | None = None,
    ) -> Self:
        """Write a workload below a folder, with inputs and reference result, unless it is there already.

        Args:
            workload: Its special inputs are used; other inputs are random.
            parent: Holds one folder for each workload, named by its digest.
            seed: Of the random inputs.
            add_reference: Calls the method of that name on a folder, in another process for example.
            store: Takes the large constants; default: they are written into the folder.

        Raises:
            UsageError: A random input has a symbolic shape.
            IntarsiaError: Not even the reference computes the program.
            OutputError: The folder cannot be written.
        """
        folder = cls(parent / f"{workload.digest}-{seed}")
        if folder.path.exists():
            return folder
        inputs = workload.inputs(seed)
        program = print_module(workload.module)
        with written_whole(folder.path) as temporary:
            temporary.mkdir()
            (temporary / _PROGRAM).write_text(program.text)
            constants = {f"constant{number}": array for number, array in enumerate(program.constants)}
            large = {} if store is None else large_constants(constants)
            places = {} if store is None else {name: str(store.put(array)) for name, array in large.items()}
            own = {name: array for name, array in constants.items() if name not in large}
            facts = {"constants": places, "is_checked": workload.is_checked}
            named = {f"input:{name}": array for name, array in inputs.items()}
            write_arrays(temporary, _GIVEN, {**own, **named}, facts)
            if workload.expected is not None:
                gate = Gate.known(workload.module, workload.expected)
                cls(temporary).write_reference(gate)
            else:
                (add_reference or _add_reference)(temporary)
        return folder

    def add_reference(self) -> None:
        """Compute the reference result of a folder that has none yet, and write it there.

        Raises:
            IntarsiaError: Not even the reference computes the program.
        """
        is_checked = read_facts(self.path, _GIVEN)["is_checked"]
        gate_for = Gate.for_module if is_checked else Gate.stand_in
        self.write_reference(gate_for(self.module(), self.inputs()))

    def write_reference(self, gate: Gate) -> None:
        """Write the reference result of a folder that has none yet; OSError if the file system refuses."""
        tensors = {f"expected{number}": array for number, array in enumerate(gate.expected)}
        tolerances = [asdict(tolerance) for tolerance in gate.tolerances]
        facts = {"outputs": gate.names, "tolerances": tolerances, "reference": gate.reference}
        write_arrays(self.path, _EXPECTED, tensors, facts)

    def module(self) -> IRModule:
        """The program."""
        places = read_facts(self.path, _GIVEN)["constants"]
        tensors = {
            **read_arrays(self.path, _GIVEN, "constant"),
            **{name: stored_constant(Path(place)) for name, place in places.items()},
        }
        constants = [tensors[f"constant{number}"] for number in range(len(tensors))]
        return parse_module((self.path / _PROGRAM).read_text(), constants)

    def inputs(self) -> dict[str, Array]:
        """The arrays to run the program on, by parameter name."""
        found = read_arrays(self.path, _GIVEN, "input:")
        return {name.removeprefix("input:"): array for name, array in found.items()}

    def gate(self) -> Gate:
        """The reference result."""
        facts = read_facts(self.path, _EXPECTED)
        tensors = read_arrays(self.path, _EXPECTED, "expected")
        expected = tuple(tensors[f"expected{number}"] for number in range(len(tensors)))
        tolerances = tuple(Tolerance(**item) for item in facts["tolerances"])
        return Gate(tuple(facts["outputs"]), expected, tolerances, facts["reference"])


def _add_reference(path: Path) -> None:
    WorkloadFolder(path).add_reference()
