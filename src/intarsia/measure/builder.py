"""Build candidates in worker processes."""

from __future__ import annotations

import shutil
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.worker_calls import AnyInput, build_call
from intarsia.measure.workers import TaskLimits, Workers
from intarsia.support.digest import digest_text


@dataclass(frozen=True, slots=True)
class Builder:
    """Instantiates and compiles candidates in workers, as many at a time as there are workers.

    Attributes:
        workers: Workers that build the candidates.
        folder: Folder of the artifacts, one folder for each.
        limits: Limits of one build.
        most_stores: Limit of the stores of a kernel's unrolled loops, or None.
    """

    workers: Workers
    folder: Path
    limits: TaskLimits
    most_stores: int | None = None

    def submit(self, measured: AnyInput, workload: Path) -> Future[Outcome]:
        """Start to build a candidate; pass the future to `Workers.built`.

        Args:
            measured: The candidate.
            workload: Folder of its workload.
        """
        artifact = self.artifact(measured, workload)
        function, arguments = build_call(measured, workload, artifact, self.most_stores)
        return self.workers.start_build(function, arguments, self.limits)

    def artifact(self, measured: AnyInput, workload: Path) -> Path:
        """Return the path of a candidate's artifact."""
        name = digest_text((workload.name, str(measured.target), measured.candidate.digest))
        return self.folder / name

    def discard(self, artifact: Path) -> None:
        """Remove the files of a build that failed or was interrupted."""
        for path in (artifact, *self.folder.glob(f".{artifact.name}.*")):
            shutil.rmtree(path, ignore_errors=True)
