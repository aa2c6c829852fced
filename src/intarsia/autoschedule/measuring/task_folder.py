"""Store tasks in folders that worker processes read."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt

from intarsia.autoschedule.measuring.reference_result import gate_of, reference_result
from intarsia.autoschedule.measuring.task_contents import task_contents
from intarsia.autoschedule.task import SearchTask
from intarsia.measure.arrays.array_files import read_arrays, write_arrays
from intarsia.measure.judge.gate import Gate
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.machine.isa import Isa
from intarsia.support.files import write_atomically
from intarsia.transform import PassSettings

Array = npt.NDArray[Any]

_PROGRAM: Final = "task.pickle"
_GIVEN: Final = "given"
_EXPECTED: Final = "expected"
_KEPT: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class TaskProgram:
    """The computation that workers build schedules for.

    Attributes:
        dag: The computation.
        isa: Instruction set of the code.
        threads: Number of threads that run it.
        option: Layout rewrite option for placeholders whose layout is free.
        settings: Settings of the passes on loops.
    """

    dag: ComputeDAG
    isa: Isa
    threads: int
    option: LayoutRewriteOption
    settings: PassSettings


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """The folder of a task, from which workers read it.

    Attributes:
        path: The folder.
    """

    path: Path

    @classmethod
    def write(
        cls, path: Path, task: SearchTask, isa: Isa, seed: int = 0, settings: PassSettings | None = None
    ) -> TaskFolder:
        """Write a task with the contents of its placeholders; `add_reference` comes next.

        Args:
            path: Folder that does not exist yet.
            task: The task.
            isa: Instruction set of the code.
            seed: Seed of random contents.
            settings: Settings of the passes on loops; default: those of this thread.

        Raises:
            OutputError: The folder cannot be written.
        """
        settings = PassSettings.current() if settings is None else settings
        threads, option = task.hardware.num_cores, task.layout_rewrite_option
        program = TaskProgram(task.dag, isa, threads, option, settings)
        with write_atomically(path) as temporary:
            temporary.mkdir()
            (temporary / _PROGRAM).write_bytes(pickle.dumps(program, protocol=5))
            write_arrays(temporary, _GIVEN, task_contents(task, seed))
        return cls(path)

    def add_reference(self) -> None:
        """Compute the reference result, and write it.

        Raises:
            CompileError: There is no llvmlite, or it refuses the code.
            OSError: The file system refuses.
        """
        program = self.program()
        write_arrays(self.path, _EXPECTED, reference_result(program.dag, self.contents(), program.isa))

    def program(self) -> TaskProgram:
        """Return the stored computation; it is read once in each process."""
        return _program(self.path)

    def contents(self) -> Mapping[str, Array]:
        """Return the contents of the placeholders by name, mapped from the file."""
        return read_arrays(self.path, _GIVEN)

    def gate(self) -> Gate:
        """Return the reference result with its tolerances."""
        return gate_of(self.program().dag, read_arrays(self.path, _EXPECTED))


@functools.lru_cache(_KEPT)
def _program(path: Path) -> TaskProgram:
    program: TaskProgram = pickle.loads((path / _PROGRAM).read_bytes())  # noqa: S301 -- written by the parent
    return program


def add_reference(path: Path) -> None:
    """Add the reference result to the task in a folder; a worker calls it."""
    TaskFolder(path).add_reference()
