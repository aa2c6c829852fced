"""Build candidates in worker processes."""

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
        pool: Workers that build the candidates.
        folder: Folder of the artifacts, one folder for each.
        timeout_s: Time limit of one build in seconds.
        memory_bytes: Memory in bytes that one build may add; None for no limit.
    """

    pool: WorkerPool
    folder: Path
    timeout_s: float = 60.0
    memory_bytes: int | None = None

    def submit(self, measured: MeasureInput, workload: WorkloadFolder) -> Future[Outcome]:
        """Start to build a candidate; pass the future to `outcome`."""
        candidate = measured.candidate
        arguments = (
            *(workload.path, str(measured.target), candidate.kind, candidate.trace),
            self.artifact(measured, workload),
        )
        return self.pool.submit_task(
            Task(build_candidate, arguments, timeout_s=self.timeout_s, memory_bytes=self.memory_bytes)
        )

    def artifact(self, measured: MeasureInput, workload: WorkloadFolder) -> Path:
        """Return the path of a candidate's artifact."""
        name = digest_text((workload.path.name, str(measured.target), measured.candidate.digest))
        return self.folder / name

    def discard(self, artifact: Path) -> None:
        """Remove the files of a build that failed or was interrupted."""
        for path in (artifact, *self.folder.glob(f".{artifact.name}.*")):
            shutil.rmtree(path, ignore_errors=True)

    @staticmethod
    def outcome(future: Future[Outcome]) -> Outcome:
        """Wait for a build and return its outcome."""
        return task_outcome(future, MeasureError.BUILD_TIMEOUT)
