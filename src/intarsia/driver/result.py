"""What `tune` returns."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from intarsia.collage.placement.plan import Plan
from intarsia.driver.explain.explanation import Explanation
from intarsia.driver.records import CandidateRecord
from intarsia.driver.schedule_records import ScheduleRow
from intarsia.runtime.executable import Executable
from intarsia.runtime.self_test import SelfTest
from intarsia.support.plain_record import to_plain
from intarsia.target import Host


@dataclass(frozen=True, slots=True)
class TuneResult:
    """The fastest correct executable, and how it was found.

    Attributes:
        model: What was tuned: the file's or graph's name.
        executable: The winner, ready to run or save.
        candidates: All candidates, the winner first, then by latency, then those that were not measured.
        reference: How the reference result was made, in words.
        self_test: The inputs that were used, with the reference result.
        host: The machine that was measured on.
        seconds: Duration of the whole run.
        seed: Of the random inputs and of the order of measurement.
        explanation: Why the winner runs the parts of the model as it does, and what else was tried.
        stopped: Whether it was ended before its time, on request.
        plan: The winner as a plan, which `Plan.write` saves and a later run takes up.
        schedules: Native kernels whose schedules were searched, those with the most time first.
        finished_at: When an earlier run has found all this, in seconds since 1970 (UTC), if it was only said
            again: the winner was built anew and found right, and nothing was measured.
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

    @property
    def chosen(self) -> CandidateRecord:
        """The winner's record."""
        return next(record for record in self.candidates if record.chosen)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the winner with its self test and its explanation; see `Executable.save`.

        Raises:
            OutputError: It cannot be written.
        """
        self.executable.save(path, self_test=self.self_test, explanation=self.explanation.to_text())

    def explain(self) -> str:
        """In a few sentences: who won, by how much, and why each other candidate did not."""
        lines = [f"{self.model}: {self.chosen.name} was chosen."]
        lines += [f"  {_fate(record)}" for record in self.candidates if not record.chosen]
        return "\n".join([*lines, f"  The reference result: {self.reference}."])

    def to_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "model": self.model,
            "chosen": self.chosen.name,
            "candidates": [record.to_json() for record in self.candidates],
            "schedules": [row.to_json() for row in self.schedules],
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
