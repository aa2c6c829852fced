"""What earlier runs have learned about decisions on kernels: a cost model of their answers.

An answer is the share of the time of its kernels that a choice has saved in some model. The expectation for a
new question is the mean of the answers to the same question with the same choice on similar kernels, weighted
by their likeness (Nadaraya-Watson kernel regression on logarithms of work and sizes). It needs no training,
and is deterministic. Where nothing similar was answered, there is none.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from intarsia.measure.database import Database, MeasureRecord
from intarsia.measure.database.record import Measurement
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.support.digest import digest_text

KIND: Final = "kernel answer"
"""Kind of the records of answers; such candidates are only looked up, never instantiated."""

WIDTH: Final = 0.5
"""Distance at which an answer counts for 0.6 of an equal one: a factor of 1.4 in one size."""

LEAST_EVIDENCE: Final = 2.0
"""Sum of weights below which nothing is expected: one run may have been disturbed."""

_WORKLOAD: Final = digest_text(("kernel answers", "1"))
"""Workload of the records; the number changes with their features."""


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """What a choice has saved in a model.

    Attributes:
        subject: Text of the decision, the choice and the operators (`kernels.answer_features`).
        features: Features of the kernel (`kernels.answer_features`).
        saved: Share of the time of its kernels that the choice has saved, below 0 if it was slower.
        model: Digest of the model.
    """

    subject: str
    features: tuple[float, ...]
    saved: float
    model: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a choice is expected to save.

    Attributes:
        mean: Expected share of the time of its kernels.
        deviation: Standard deviation of the similar answers.
        evidence: Sum of their weights.
    """

    mean: float
    deviation: float
    evidence: float

    @property
    def most(self) -> float:
        """The share that it saves at most, by what was seen: one standard deviation above the mean."""
        return self.mean + self.deviation


@dataclass(frozen=True, eq=False)
class KernelAnswers:
    """The answers of earlier runs of other models on this machine.

    Attributes:
        answers: Answers by subject.
        database: Database to which new answers are added, or None.
        host: Digest of the machine's fingerprint.
        model: Digest of the model that is tuned; its own answers are in its measurements, and do not count,
            so that a resumed run expects what the interrupted one did.
    """

    answers: dict[str, list[KernelAnswer]] = field(default_factory=dict)
    database: Database | None = None
    host: str = ""
    model: str = ""

    @classmethod
    def read(cls, database: Database | None, host: str, model: str) -> Self:
        """Return the answers of a database.

        Args:
            database: Database of measurements, or None.
            host: Digest of the machine's fingerprint.
            model: Digest of the model that is tuned.

        Raises:
            DatabaseError: The database cannot be read.
        """
        records = () if database is None else database.records_of(_WORKLOAD)
        answers: dict[str, list[KernelAnswer]] = {}
        for record in records:
            answer = _read_answer(record) if record.host == host else None
            if answer is not None and answer.model != model:
                answers.setdefault(answer.subject, []).append(answer)
        return cls(answers, database, host, model)

    def expect(self, subject: str, features: Sequence[float]) -> Expectation | None:
        """Return what a choice is expected to save; None if too little is known of similar kernels."""
        weighed = [
            (math.exp(-0.5 * (math.dist(features, answer.features) / WIDTH) ** 2), answer.saved)
            for answer in self.answers.get(subject, ())
            if len(answer.features) == len(features)
        ]
        evidence = sum(weight for weight, _ in weighed)
        if evidence < LEAST_EVIDENCE:
            return None
        mean = sum(weight * saved for weight, saved in weighed) / evidence
        variance = sum(weight * (saved - mean) ** 2 for weight, saved in weighed) / evidence
        return Expectation(mean, math.sqrt(variance), evidence)

    def keep(self, subject: str, features: Sequence[float], before: float, after: float) -> None:
        """Store the seconds of a question's kernels by the rule, and with a choice.

        Raises:
            DatabaseError: They cannot be stored.
        """
        if self.database is None or not before > 0 or not math.isfinite(after):
            return
        trace: PlainData = {
            "subject": subject,
            "features": [float(number) for number in features],
            "before": float(before),
            "model": self.model,
        }
        result = MeasureResult((float(after),), MeasureError.OK, "", 0.0, time.time())
        candidate = Candidate(KIND, trace)
        record = MeasureRecord(_WORKLOAD, "native", self.host, KIND, candidate.text, (Measurement(result),))
        self.database.commit(record)


def _read_answer(record: MeasureRecord) -> KernelAnswer | None:
    """Return the answer of a record; None if it has none, or is of another version."""
    if record.kind != KIND or not record.result.is_ok:
        return None
    try:
        trace = json.loads(record.trace)
        features = tuple(float(number) for number in trace["features"])
        saved = 1.0 - record.result.cost / float(trace["before"])
        return KernelAnswer(str(trace["subject"]), features, saved, str(trace["model"]))
    except (ValueError, KeyError, TypeError, ZeroDivisionError):
        return None
