"""Write tasks for workers to read, each once, with its reference result."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from intarsia.autoschedule.measuring.task_folder import TaskFolder, add_reference
from intarsia.autoschedule.task import SearchTask
from intarsia.measure.workers import TaskLimits, Workers
from intarsia.native.dag import structural_key
from intarsia.native.machine.isa import Isa
from intarsia.support.digest import digest_bytes, digest_text
from intarsia.support.errors import ExecutionError
from intarsia.transform import PassSettings


def contents_parts(task: SearchTask) -> list[str]:
    """Return digests of the given contents of a task's placeholders, by position; names do not count."""
    given = (
        (position, task.task_inputs.get(tensor.buffer.name))
        for position, tensor in enumerate(task.dag.placeholders)
    )
    return [
        f"{position} {digest_bytes(array.tobytes()).hex()}" for position, array in given if array is not None
    ]


@dataclass(eq=False)
class PreparedTasks:
    """Writes tasks into a folder.

    Attributes:
        folder: Folder that holds a folder for each task.
        workers: Worker processes that compute reference results.
        isa: Instruction set of the code.
        seed: Seed of random contents.
        reference_seconds: Limit of the seconds of a reference result.
        settings: Settings of the passes on loops; default: those of this thread.
    """

    folder: Path
    workers: Workers
    isa: Isa
    seed: int
    reference_seconds: float
    settings: PassSettings = field(default_factory=PassSettings.current)
    _keys: dict[SearchTask, str] = field(default_factory=dict)

    def path_of(self, task: SearchTask) -> Path:
        """Return the folder of a task, written if missing; equal computations on as many threads share it.

        Raises:
            ExecutionError: The reference result cannot be computed.
            TaskStoppedError: The pool was stopped meanwhile.
            OutputError: The folder cannot be written.
        """
        if task not in self._keys:
            option, threads = task.layout_rewrite_option.name, str(task.hardware.num_cores)
            parts = [structural_key(task.dag), option, threads, *contents_parts(task)]
            key = digest_text(parts)
            if not (self.folder / key).exists():
                self._write(self.folder / key, task)
            self._keys[task] = key
        return self.folder / self._keys[task]

    def _write(self, path: Path, task: SearchTask) -> None:
        unfinished = path.with_name(f"{path.name}.new")
        TaskFolder.write(unfinished, task, self.isa, self.seed, self.settings)
        build = self.workers.start_build(add_reference, (unfinished,), TaskLimits(self.reference_seconds))
        failure = self.workers.built(build)
        if failure is not None:
            problem = f"the reference result of a task cannot be computed: {failure.message}"
            raise ExecutionError(problem)
        unfinished.rename(path)
