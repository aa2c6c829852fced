"""Store the computations of kernels in folders that worker processes read."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy.typing as npt

from intarsia.measure.arrays.array_files import read_arrays, write_arrays
from intarsia.measure.judge.gate import Gate
from intarsia.measure.schedules.reference_result import gate_of, reference_result
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.support.files import write_atomically
from intarsia.transform import PassSettings

Array = npt.NDArray[Any]

_PROGRAM: Final = "kernel.pickle"
_GIVEN: Final = "given"
_EXPECTED: Final = "expected"
_KEPT: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class KernelProgram:
    """The computation that workers build schedules for.

    Attributes:
        dag: The computation.
        isa: Instruction set of the code.
        settings: Settings of the passes on loops.
        is_for_gpu: Whether schedules are for the GPU; the reference result is that of this CPU all the same.
    """

    dag: ComputeDAG
    isa: Isa
    settings: PassSettings
    is_for_gpu: bool = False


@dataclass(frozen=True, slots=True)
class KernelFolder:
    """The folder of a kernel's computation, from which workers read it.

    Attributes:
        path: The folder.
    """

    path: Path

    @classmethod
    def write(cls, path: Path, program: KernelProgram, contents: Mapping[str, Array]) -> Self:
        """Write a computation with the contents of its placeholders; `add_reference` comes next.

        Args:
            path: Folder that does not exist yet.
            program: The computation.
            contents: Contents of its placeholders by name.

        Raises:
            OutputError: The folder cannot be written.
        """
        with write_atomically(path) as temporary:
            temporary.mkdir()
            (temporary / _PROGRAM).write_bytes(pickle.dumps(program, protocol=5))
            write_arrays(temporary, _GIVEN, contents)
        return cls(path)

    def add_reference(self) -> None:
        """Compute the reference result, and write it.

        Raises:
            CompileError: There is no llvmlite, or it refuses the code.
            OSError: The file system refuses.
        """
        program = self.program()
        write_arrays(self.path, _EXPECTED, reference_result(program.dag, self.contents(), program.isa))

    def program(self) -> KernelProgram:
        """Return the stored computation; it is read once in each process."""
        return _program(self.path)

    def contents(self) -> Mapping[str, Array]:
        """Return the contents of the placeholders by name, mapped from the file."""
        return read_arrays(self.path, _GIVEN)

    def gate(self) -> Gate:
        """Return the reference result with its tolerances."""
        return gate_of(self.program().dag, read_arrays(self.path, _EXPECTED))


@functools.lru_cache(_KEPT)
def _program(path: Path) -> KernelProgram:
    program: KernelProgram = pickle.loads((path / _PROGRAM).read_bytes())  # noqa: S301 -- written by the parent
    return program


def add_kernel_reference(path: Path) -> None:
    """Add the reference result to the computation in a folder; a worker calls it."""
    KernelFolder(path).add_reference()
