"""The front of a run: programs of which no other is both faster and more exact, built and saved."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from intarsia.build import build
from intarsia.measure.candidate_kind import instantiate
from intarsia.measure.measure_input import MeasureInput
from intarsia.report.front_chart import ChartPoint, front_picture
from intarsia.runtime.executable import Executable
from intarsia.runtime.self_test import SelfTest
from intarsia.support.errors import OutputError
from intarsia.tune.contest.candidate_record import CandidateRecord, Status
from intarsia.tune.contest.entrant import Entrant

ROUNDING: Final = 1e-5
"""Error below which programs count as equally exact: so much differs between right programs in float32."""

LIST: Final = "front.json"
PICTURE: Final = "front.svg"


@dataclass(frozen=True, slots=True, eq=False)
class FrontPoint:
    """A program of the front.

    Attributes:
        name: Name of the candidate.
        seconds: Median latency in seconds.
        error: Largest difference from the reference relative to its largest value.
        input: Measure input that the program is built of.
        chosen: Whether it is the winner of the run.
    """

    name: str
    seconds: float
    error: float
    input: MeasureInput
    chosen: bool = False

    def build(self) -> Executable:
        """Build the program in this process.

        Raises:
            CompileError: The toolchain fails, unlike in the run.
        """
        item = self.input
        return build(instantiate(item.workload.module, item.target, item.candidate))

    def to_json(self) -> dict[str, Any]:
        """Return the point as plain data."""
        return {
            "name": self.name,
            "target": str(self.input.target),
            "latency_seconds": self.seconds,
            "max_error": self.error,
            "chosen": self.chosen,
        }


@dataclass(frozen=True, slots=True)
class SavedFront:
    """Files of a saved front.

    Attributes:
        artifacts: Path of the artifact of each saved point, by name of the candidate.
        list: Path of the list of all points.
        picture: Path of the picture.
        missed: Largest errors within which there is no program.
    """

    artifacts: dict[str, Path]
    list: Path
    picture: Path
    missed: tuple[float, ...] = ()


def front_of(entrants: Sequence[Entrant], records: Sequence[CandidateRecord]) -> tuple[FrontPoint, ...]:
    """Return the front of measured candidates, the fastest first.

    The winner is its first point. A candidate whose median is below the winner's was not shown to be faster
    by the race, and counts as equally fast.

    Args:
        entrants: All candidates.
        records: Their outcomes.
    """
    inputs = {entrant.name: entrant.input for entrant in entrants}
    fastest = min((_seconds(record) for record in records if record.chosen), default=0.0)
    points = [
        FrontPoint(
            record.name,
            max(fastest, _seconds(record)),
            record.max_error,
            inputs[record.name],
            record.chosen,
        )
        for record in records
        if record.status in (Status.MEASURED, Status.SLOW)
        and record.timing is not None
        and record.max_error is not None
        and record.name in inputs
    ]
    front: list[FrontPoint] = []
    for point in sorted(points, key=lambda item: (item.seconds, not item.chosen, item.error)):
        if not front or max(point.error, ROUNDING) < max(front[-1].error, ROUNDING):
            front.append(point)
    return tuple(front)


def _seconds(record: CandidateRecord) -> float:
    return 0.0 if record.timing is None else record.timing.median


def points_within(points: Sequence[FrontPoint], errors: Sequence[float]) -> tuple[FrontPoint, ...]:
    """Return the fastest point within each of some errors that has one; all points if no error is given.

    Args:
        points: Points of a front, the fastest first.
        errors: Largest errors.
    """
    if not errors:
        return tuple(points)
    fastest = (next((point for point in points if point.error <= error), None) for error in errors)
    return tuple(dict.fromkeys(point for point in fastest if point is not None))


def save_front(
    points: Sequence[FrontPoint],
    folder: str | os.PathLike[str],
    model: str,
    self_test: SelfTest,
    errors: Sequence[float] = (),
) -> SavedFront:
    """Save programs of a front as artifacts, with a list and a picture of all its points.

    Each program is built again in this process.

    Args:
        points: Points of the front, the fastest first.
        folder: Folder for the files, which is created if it does not exist.
        model: Name of the model.
        self_test: Inputs with the reference result.
        errors: Largest errors: only the fastest program within each is saved; all if empty.

    Raises:
        UsageError: Matplotlib is not installed.
        CompileError: A program cannot be built again.
        OutputError: A file cannot be written.
    """
    chosen = points_within(points, errors)
    picture = front_picture(model, [_chart_point(point) for point in points])
    directory = Path(folder)
    paths: dict[str, Path] = {}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for number, point in enumerate(points, 1):
            if point in chosen:
                paths[point.name] = directory / f"{number:02}-{_file_name(point.name)}.intarsia"
                executable = point.build()
                try:
                    executable.save(paths[point.name], self_test=self_test)
                finally:
                    executable.close()
        rows = [
            {**point.to_json(), "file": paths[point.name].name if point.name in paths else None}
            for point in points
        ]
        (directory / LIST).write_text(json.dumps({"model": model, "points": rows}, indent=1) + "\n")
        (directory / PICTURE).write_text(picture)
    except OSError as error:
        raise OutputError(f"cannot write the front to {directory}: {error.strerror or error}") from error
    missed = tuple(error for error in errors if all(point.error > error for point in points))
    return SavedFront(paths, directory / LIST, directory / PICTURE, missed)


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:60]


def _chart_point(point: FrontPoint) -> ChartPoint:
    return ChartPoint(point.name, str(point.input.target.toolchain), point.seconds, point.error)
