"""Build candidates in worker processes."""

from __future__ import annotations

import shutil
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from intarsia.measure.candidate_task import Outcome, build_candidate
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.workers import TaskLimits, Workers
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.digest import digest_text


@dataclass(frozen=True, slots=True)
class Builder:
    """Instantiates and compiles candidates in workers, as many at a time as there are workers.

    Attributes:
        workers: Workers that build the candidates.
        folder: Folder of the artifacts, one folder for each.
        limits: Limits of one build.
    """

    workers: Workers
    folder: Path
    limits: TaskLimits

    def submit(self, measured: MeasureInput, workload: WorkloadFolder) -> Future[Outcome]:
        """Start to build a candidate; pass the future to `Workers.built`."""
        candidate = measured.candidate
        arguments = (
            *(workload.path, str(measured.target), candidate.kind, candidate.trace),
            self.artifact(measured, workload),
        )
        return self.workers.start_build(build_candidate, arguments, self.limits)

    def artifact(self, measured: MeasureInput, workload: WorkloadFolder) -> Path:
        """Return the path of a candidate's artifact."""
        name = digest_text((workload.path.name, str(measured.target), measured.candidate.digest))
        return self.folder / name

    def discard(self, artifact: Path) -> None:
        """Remove the files of a build that failed or was interrupted."""
        for path in (artifact, *self.folder.glob(f".{artifact.name}.*")):
            shutil.rmtree(path, ignore_errors=True)
