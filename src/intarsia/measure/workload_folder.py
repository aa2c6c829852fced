"""Workloads in folders: what worker processes read, constants by memory map."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy.typing as npt

from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.measure.arrays.array_files import read_arrays, read_facts, write_arrays
from intarsia.measure.arrays.constant_store import ConstantStore, large_constants, stored_constant
from intarsia.measure.inputs import InputKind
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.gate_files import read_gate, write_gate
from intarsia.measure.judge.quorum import JudgeLimits
from intarsia.measure.judge.sized_trials import sized_trials
from intarsia.measure.judge.trials import Trial
from intarsia.measure.measure_input import Workload
from intarsia.measure.sizes.size_sample import SizeSample
from intarsia.support.callbacks import silent
from intarsia.support.files import write_atomically
from intarsia.transform import PassSettings

Array = npt.NDArray[Any]

_PROGRAM: Final = "program.txt"
_GIVEN: Final = "given"
FACTS_FILE: Final = f"{_GIVEN}.json"
"""Name of the file with the facts of a workload."""

_EXPECTED: Final = "expected"
_KEPT: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadFolder:
    """The files of a workload for workers.

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

        Where another process adds the reference result later, `add_reference` does nothing: candidates can be
        built without it.

        Args:
            workload: Its special inputs are used; other inputs are random.
            parent: Holds one folder for each workload, named by its digest.
            seed: Seed of the random inputs.
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
        with write_atomically(folder.path) as temporary:
            temporary.mkdir()
            (temporary / _PROGRAM).write_text(program.text)
            constants = {f"constant{number}": array for number, array in enumerate(program.constants)}
            large = {} if store is None else large_constants(constants)
            places = {} if store is None else {name: str(store.put(array)) for name, array in large.items()}
            stored_here = {name: array for name, array in constants.items() if name not in large}
            facts = {
                "constants": places,
                "is_checked": workload.is_checked,
                "judge_seconds": workload.judge_seconds,
                "pass_settings": workload.settings.text,
                "samples": [[dict(sample.sizes), sample.weight] for sample in workload.samples],
                "seed": seed,
            }
            named = {f"input:{name}": array for name, array in inputs.items()}
            write_arrays(temporary, _GIVEN, {**stored_here, **named}, facts)
            if workload.expected is not None:
                gate = Gate.known(workload.module, workload.expected)
                cls(temporary).write_reference(gate)
            else:
                (add_reference or _add_reference_here)(temporary)
        return folder

    def add_reference(
        self,
        left_out: Sequence[tuple[str, str]] = (),
        on_judge: Callable[[str], object] = silent,
    ) -> None:
        """Compute the reference result of a folder that has none yet, and write it there.

        Args:
            left_out: Names of judges that are not called, each with the reason.
            on_judge: Called with the name of a judge before each of its runs, and with "" after it.

        Raises:
            IntarsiaError: Not even the reference computes the program.
        """
        facts = read_facts(self.path, _GIVEN)
        module, inputs = self.module(), self.inputs()
        limits = JudgeLimits(facts["judge_seconds"], left_out=tuple(left_out))
        if not facts["is_checked"]:
            limits = JudgeLimits(is_checked=False, left_out=limits.left_out)
            self.write_reference(Gate.for_module(module, inputs, limits, on_judge))
            return
        samples = [SizeSample(sizes, weight) for sizes, weight in facts["samples"]]
        first, *others = sized_trials(module, inputs, samples, limits, facts["seed"], on_judge)
        for number, trial in enumerate(others, 1):
            about = {"kind": trial.name, "weight": trial.weight, "label": trial.label}
            write_arrays(self.path, f"{_GIVEN}{number}", trial.inputs, about)
            write_gate(self.path, f"{_EXPECTED}{number}", trial.gate)
        self.write_reference(first.gate)

    def write_reference(self, gate: Gate) -> None:
        """Write the reference result of a folder that has none yet; OSError if the file system refuses."""
        write_gate(self.path, _EXPECTED, gate)

    def stored_constants(self) -> dict[str, Path]:
        """Return the folders of the constants that are in a store, by name."""
        return {name: Path(place) for name, place in read_facts(self.path, _GIVEN)["constants"].items()}

    def module(self) -> IRModule:
        """The program."""
        stored = self.stored_constants().items()
        tensors = {
            **read_arrays(self.path, _GIVEN, "constant"),
            **{name: stored_constant(path) for name, path in stored},
        }
        constants = [tensors[f"constant{number}"] for number in range(len(tensors))]
        return parse_module((self.path / _PROGRAM).read_text(), constants)

    def settings(self) -> PassSettings:
        """The pass settings that candidates are built under."""
        return PassSettings(read_facts(self.path, _GIVEN)["pass_settings"])

    def inputs(self) -> dict[str, Array]:
        """The arrays to run the program on, by parameter name."""
        found = read_arrays(self.path, _GIVEN, "input:")
        return {name.removeprefix("input:"): array for name, array in found.items()}

    def gate(self) -> Gate:
        """The reference result."""
        return read_gate(self.path, _EXPECTED)

    def trials(self) -> tuple[Trial, ...]:
        """All input sets with their gates; that of `inputs` and `gate` is the first."""
        return _trials(self.path)


@functools.lru_cache(_KEPT)
def _trials(path: Path) -> tuple[Trial, ...]:
    """Read once in each process: the noise of an output is worked out when it is first judged."""
    folder = WorkloadFolder(path)
    others: list[Trial] = []
    while (path / f"{_GIVEN}{len(others) + 1}.json").exists():
        number = len(others) + 1
        about = read_facts(path, f"{_GIVEN}{number}")
        inputs = read_arrays(path, f"{_GIVEN}{number}")
        gate = read_gate(path, f"{_EXPECTED}{number}")
        others.append(Trial(about["kind"], inputs, gate, about["weight"], about["label"]))
    samples = read_facts(path, _GIVEN)["samples"]
    first = SizeSample(*samples[0]) if samples else SizeSample({})
    usual = Trial(InputKind.ORDINARY, folder.inputs(), folder.gate(), first.weight, first.label)
    return (usual, *others)


def _add_reference_here(path: Path) -> None:
    WorkloadFolder(path).add_reference()
