"""Evaluations in a file: a run that was recorded is repeated without hardware, to the same decisions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from intarsia.ir import IRModule, structural_digest
from intarsia.support.errors import DatabaseError
from intarsia.support.files import output_error
from intarsia.support.json_text import parse_json_text
from intarsia.tune.evaluator import FAILED, Evaluation, Evaluator, EvaluatorOfKernels, evaluator_of_part
from intarsia.tune.trace import Trace


@dataclass(eq=False)
class LoggingEvaluator:
    """Appends the evaluations of another evaluator to a file, one line per candidate.

    Attributes:
        inner: Evaluator of the candidates.
        path: The file; it may hold earlier evaluations.
    """

    inner: Evaluator
    path: Path

    def evaluate(self, candidates: Sequence[Trace]) -> Sequence[Evaluation]:
        """Evaluate candidates and append the results to the file; results in the candidates' order.

        Raises:
            OutputError: The file cannot be written.
        """
        evaluations = self.inner.evaluate(candidates)
        lines = [
            _line(candidate, evaluation)
            for candidate, evaluation in zip(candidates, evaluations, strict=True)
        ]
        try:
            with self.path.open("a") as file:
                file.writelines(lines)
        except OSError as error:
            raise output_error(self.path, error) from error
        return evaluations

    def time_kernels(
        self, candidates: Sequence[Trace], kernels: Sequence[str]
    ) -> list[tuple[float, ...]] | None:
        """See EvaluatorOfKernels.time_kernels; times of kernels are not in the file."""
        inner = self.inner
        return inner.time_kernels(candidates, kernels) if isinstance(inner, EvaluatorOfKernels) else None

    def for_part(self, mod: IRModule) -> LoggingEvaluator:
        """Return an evaluator of a part that appends to the same file."""
        return LoggingEvaluator(evaluator_of_part(self.inner, mod), self.path)


@dataclass(eq=False)
class ReplayEvaluator:
    """Evaluates from a file of a `LoggingEvaluator`; the first line of a program counts.

    Attributes:
        path: The file.

    Raises:
        DatabaseError: It cannot be read, or is no such file.
    """

    path: Path
    _evaluations: dict[str, Evaluation] = field(default_factory=dict, init=False)
    _seen: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        try:
            lines = self.path.read_text().splitlines()
        except OSError as error:
            raise DatabaseError(f"cannot read {self.path}: {error.strerror}") from error
        for number, line in enumerate(lines, 1):
            try:
                digest, perf, fate = parse_json_text(line)
                evaluation = Evaluation(float(perf), str(fate), is_new=False)
                self._evaluations.setdefault(str(digest), evaluation)
            except (ValueError, TypeError) as error:
                if number == len(lines):  # the run was ended while it wrote this one
                    continue
                raise DatabaseError(f"line {number} of {self.path} is no evaluation: {error}") from error

    def evaluate(self, candidates: Sequence[Trace]) -> list[Evaluation]:
        """Return the recorded evaluations; a candidate without one has failed."""
        return [self._answer(structural_digest(candidate.out_mod)) for candidate in candidates]

    def _answer(self, digest: str) -> Evaluation:
        if digest not in self._evaluations:
            return Evaluation(FAILED, f"not in {self.path}", is_new=False)
        is_first = digest not in self._seen
        self._seen.add(digest)
        return replace(self._evaluations[digest], is_first=is_first)


def _line(candidate: Trace, evaluation: Evaluation) -> str:
    facts = [structural_digest(candidate.out_mod), repr(evaluation.perf), evaluation.fate]
    return json.dumps(facts) + "\n"
