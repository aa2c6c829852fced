"""Finished runs of `tune`: an identical run is answered from the database, without a search."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from intarsia.autoschedule.tuning.schedule_records import ScheduleRow
from intarsia.collage.conflicts import declared_conflicts
from intarsia.collage.placement.plan import Plan, PlanError
from intarsia.measure.measure_input import Workload
from intarsia.report.explanation import Explanation
from intarsia.support.digest import digest_text
from intarsia.support.errors import ArtifactError
from intarsia.support.json_text import parse_json_text
from intarsia.support.plain_record import from_plain, to_plain
from intarsia.support.version import VERSION
from intarsia.target import Host, Target
from intarsia.transform import Pass, PassSettings
from intarsia.tune.contest.candidate_record import CandidateRecord

_WHERE: Final = "a finished run in the database"


@dataclass(frozen=True, slots=True)
class KeptRun:
    """Result of a run that was not stopped.

    Attributes:
        candidates: All candidates, the winner first.
        plan: Plan of the winner.
        explanation: Explanation of the result.
        schedules: Kernels of the schedule search, if there was one.
    """

    candidates: tuple[CandidateRecord, ...]
    plan: Plan
    explanation: Explanation
    schedules: tuple[ScheduleRow, ...] = ()

    def to_text(self) -> str:
        """Return the run as ASCII JSON on one line."""
        document = {
            "candidates": to_plain(self.candidates),
            "plan": self.plan.to_json(),
            "explanation": self.explanation.to_text(),
            "schedules": [row.to_json() for row in self.schedules],
        }
        return json.dumps(document, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse a run that `to_text` wrote.

        Raises:
            ValueError: The text is damaged, or of another version.
        """
        try:
            document = parse_json_text(text)
            candidates = from_plain(_Candidates, document, "it").candidates
            plan = Plan.from_json(document["plan"], _WHERE)
            rows = tuple(map(ScheduleRow.from_json, document["schedules"]))
            return cls(candidates, plan, Explanation.from_text(document["explanation"], _WHERE), rows)
        except (ArtifactError, PlanError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{_WHERE} is damaged: {error}") from error


@dataclass(frozen=True, slots=True)
class _Candidates:
    candidates: tuple[CandidateRecord, ...]


def question_digest(
    workload: Workload,
    host: Host,
    targets: Sequence[Target],
    *,
    seconds: float,
    trials: int | None,
    seed: int,
    searches: bool,
    passes: Sequence[Pass],
    plan: Plan | None,
    proves: bool = False,
    specializes: bool = False,
) -> str:
    """Return the digest of all options of a run; a second run with an equal digest has nothing to do.

    Args:
        workload: The model, with its inputs and the pass settings of the run.
        host: The machine, with its toolchains.
        targets: Targets of the baselines.
        seconds: Seconds for the search and the race.
        trials: Maximum number of measured candidates.
        seed: Random seed of inputs, of the evolution and of the order in the race.
        searches: Whether partitions are searched.
        passes: Tuning passes.
        plan: Plan that is a further candidate.
        proves: Whether the search goes on until nothing is left to try.
        specializes: Whether the program gets variants for sizes of symbolic dimensions.
    """
    plan_key = None if plan is None else (str(plan.whole), plan.candidate.digest)
    searched = searches, list(map(repr, passes))
    options = (
        list(map(str, targets)),
        seconds,
        trials,
        seed,
        *searched,
        plan_key,
        sorted(declared_conflicts()),
        *(["proves"] if proves else []),
        *(["specializes"] if specializes else []),
    )
    return digest_text((VERSION, workload.digest, host.digest, json.dumps(options)))


def family_question_digest(
    host: Host,
    targets: Sequence[Target],
    *,
    searches: bool,
    passes: Sequence[Pass],
    settings: PassSettings | None = None,
) -> str:
    """Return the digest of the options that runs of similar models share: each may choose the same plans.

    Args:
        host: The machine, with its toolchains.
        targets: Targets of the baselines.
        searches: Whether partitions are searched.
        passes: Tuning passes.
        settings: Pass settings of the run; default: those of this thread.
    """
    settings = PassSettings.current() if settings is None else settings
    options = (list(map(str, targets)), searches, list(map(repr, passes)), sorted(declared_conflicts()))
    return digest_text((VERSION, host.digest, json.dumps(options), *settings.digest_parts))
