"""Building candidates in worker processes."""

from __future__ import annotations

import shutil
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from intarsia.measure.candidate_task import Outcome, build_candidate
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.task_outcome import task_outcome
from intarsia.measure.worker_pool import Task, WorkerPool
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.digest import digest_text


@dataclass(frozen=True, slots=True)
class Builder:
    """Instantiates and compiles candidates in workers, as many at a time as there are workers.

    Attributes:
        pool: Where they are built.
        folder: Holds what was built, a folder each.
        timeout_s: Seconds that one build may take.
        memory_bytes: Memory that one build may add, or None.
    """

    pool: WorkerPool
    folder: Path
    timeout_s: float = 60.0
    memory_bytes: int | None = None

    def submit(self, measured: MeasureInput, workload: WorkloadFolder) -> Future[Outcome]:
        """Begin to build a candidate; the future goes to `outcome`."""
        candidate = measured.candidate
        arguments = (
            *(workload.path, str(measured.target), candidate.kind, candidate.trace),
            self.artifact(measured, workload),
        )
        return self.pool.submit_task(
            Task(build_candidate, arguments, timeout_s=self.timeout_s, memory_bytes=self.memory_bytes)
        )

    def artifact(self, measured: MeasureInput, workload: WorkloadFolder) -> Path:
        """Where a candidate is built to."""
        name = digest_text((workload.path.name, str(measured.target), measured.candidate.digest))
        return self.folder / name

    def discard(self, artifact: Path) -> None:
        """Remove what a build that failed, or was ended in the middle, has left."""
        for path in (artifact, *self.folder.glob(f".{artifact.name}.*")):
            shutil.rmtree(path, ignore_errors=True)

    @staticmethod
    def outcome(future: Future[Outcome]) -> Outcome:
        """How a build ended; waits for it."""
        return task_outcome(future, MeasureError.BUILD_TIMEOUT)
