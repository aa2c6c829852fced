"""The result of `tune`."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from intarsia.autoschedule.tuning.schedule_records import ScheduleRow
from intarsia.collage.placement.plan import Plan
from intarsia.driver.precision_front import FrontPoint, SavedFront, save_front
from intarsia.driver.result_table import html_table
from intarsia.driver.stream_search.stream_record import StreamRecord
from intarsia.report.explanation import Explanation
from intarsia.runtime.executable import Executable
from intarsia.runtime.self_test import SelfTest
from intarsia.support.errors import UsageError
from intarsia.support.plain_record import to_plain
from intarsia.support.units import duration_text
from intarsia.target import Host
from intarsia.tune.contest.candidate_record import CandidateRecord

if TYPE_CHECKING:
    from intarsia.report.page import HtmlReport


@dataclass(frozen=True, slots=True, repr=False)
class TuneResult:
    """The fastest correct executable, with the candidates and the explanation.

    Attributes:
        model: Name of the model's file or graph.
        executable: Winner, ready to run or save.
        candidates: All candidates, the winner first, then by latency, then those that were not measured.
        reference: Description of how the reference result was computed.
        self_test: Inputs that were used, with the reference result.
        host: Machine of the measurements.
        seconds: Duration of the whole run.
        seed: Random seed of the inputs and of the order of measurement.
        explanation: Regions of the winner, with the alternatives that were tried.
        stopped: Whether the run was stopped early on request.
        plan: Winner as a plan, which `Plan.write` saves for later runs.
        schedules: Native kernels with a schedule search, those with the most time first.
        finished_at: Unix time in seconds of the earlier run that this result repeats, or None. The winner
            was built again and verified, but nothing was measured.
        streams: Programs in pools under load, the chosen one first; none for the objective "latency".
        front: Programs of which no other is both faster and more exact, the fastest first; none unless it was
            requested.
    """

    model: str
    executable: Executable
    candidates: tuple[CandidateRecord, ...]
    reference: str
    self_test: SelfTest
    host: Host
    seconds: float
    seed: int
    plan: Plan
    explanation: Explanation
    stopped: bool = False
    schedules: tuple[ScheduleRow, ...] = ()
    finished_at: float | None = None
    streams: tuple[StreamRecord, ...] = ()
    front: tuple[FrontPoint, ...] = ()

    @property
    def chosen(self) -> CandidateRecord:
        """Record of the winner."""
        return next(record for record in self.candidates if record.chosen)

    def __repr__(self) -> str:
        """The model, the winner with its latency, and the number of candidates."""
        timing = self.chosen.timing
        latency = "" if timing is None else f", {duration_text(timing.median)}"
        count = len(self.candidates)
        return (
            f"TuneResult({self.model!r}: {self.chosen.name}{latency}, "
            f"of {count} candidate{'' if count == 1 else 's'})"
        )

    def _repr_html_(self) -> str:
        """The candidates as a table, for notebooks."""
        return html_table(self.model, self.candidates)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the winner with its self test and its explanation; see `Executable.save`.

        Raises:
            OutputError: The artifact cannot be written.
        """
        self.executable.save(path, self_test=self.self_test, explanation=self.explanation.to_text())

    def save_front(self, folder: str | os.PathLike[str], errors: Sequence[float] = ()) -> SavedFront:
        """Save the programs of the front in a folder, with a list (JSON) and a picture (SVG) of its points.

        Args:
            folder: Folder for the files.
            errors: Largest errors: only the fastest program within each is saved; all if empty.

        Raises:
            UsageError: The run had no front, or Matplotlib is not installed.
            CompileError: A program cannot be built again.
            OutputError: A file cannot be written.
        """
        if not self.front:
            raise UsageError("the run has no front", help="tune with front=True")
        return save_front(self.front, folder, self.model, self.self_test, errors)

    def explain(self) -> str:
        """Return a few sentences: the winner, its lead, and the outcome of each other candidate."""
        lines = [f"{self.model}: {self.chosen.name} was chosen."]
        lines += [f"  {_fate(record)}" for record in self.candidates if not record.chosen]
        return "\n".join([*lines, f"  The reference result: {self.reference}."])

    def report(self) -> HtmlReport:
        """Profile the winner, and return a report that notebooks show and `write` saves as one page of HTML.

        Raises:
            UsageError: The extra `report` is not installed.
        """
        from intarsia.driver.report_sources import winner_profile
        from intarsia.report.packages import check_report_packages
        from intarsia.report.page import HtmlReport
        from intarsia.report.report_source import ReportSource

        check_report_packages()
        profile, gap = winner_profile(self.executable, self.self_test.inputs)
        finished = self.finished_at
        run = "the run" if finished is None else "an earlier run"
        source = ReportSource(
            self.explanation,
            f"Made from the result of {run}.",
            self.host.to_json(),
            self.reference,
            time.time() if finished is None else finished,
            profile,
            gap,
        )
        return HtmlReport(source)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "model": self.model,
            "chosen": self.chosen.name,
            "candidates": [record.to_json() for record in self.candidates],
            "schedules": [row.to_json() for row in self.schedules],
            "streams": [record.to_json() for record in self.streams],
            "front": [point.to_json() for point in self.front],
            "search": to_plain(self.explanation.search),
            "losses": to_plain(self.explanation.losses),
            "reference": self.reference,
            "host": self.host.to_json(),
            "seconds": self.seconds,
            "seed": self.seed,
            "stopped": self.stopped,
            "finished_at": self.finished_at,
        }


def _fate(record: CandidateRecord) -> str:
    if record.ratio is None:
        return f"{record.name}: {record.status.value}: {record.reason}"
    interval = f"{record.ratio.low:.3f} to {record.ratio.high:.3f}"
    if record.reason:
        return f"{record.name}: {record.status.value}: {record.reason}"
    noise = ", within noise" if record.ratio.contains_one else ""
    return f"{record.name}: {record.ratio.ratio:.3f} times the winner's latency ({interval}{noise})"
