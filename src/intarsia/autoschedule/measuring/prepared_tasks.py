"""Tasks that workers can read: each written once, with its reference result."""

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
    """What tells the given contents of a task's placeholders apart; names do not count."""
    given = (
        (place, task.task_inputs.get(each.buffer.name)) for place, each in enumerate(task.dag.placeholders)
    )
    return [f"{place} {digest_bytes(array.tobytes()).hex()}" for place, array in given if array is not None]


@dataclass(eq=False)
class PreparedTasks:
    """Writes tasks into a folder.

    Attributes:
        folder: Holds a folder for each task.
        workers: Which compute reference results.
        isa: What code may use.
        seed: Of random contents.
        reference_seconds: Time that a reference result may take.
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
        """The folder of a task, equal for equal computations on as many threads; made if it is not there.

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
