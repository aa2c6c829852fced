"""Evaluations in a file: a run that was recorded is repeated without hardware, to the same decisions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from intarsia.ir import IRModule, structural_digest
from intarsia.support.errors import DatabaseError
from intarsia.support.files import output_error
from intarsia.tune.evaluator import FAILED, Evaluation, Evaluator, evaluator_of_part
from intarsia.tune.trace import Trace


@dataclass(eq=False)
class LoggingEvaluator:
    """Asks another evaluator, and appends each answer to a file, a line a candidate.

    Attributes:
        inner: Who knows.
        path: The file; it may hold earlier evaluations.
    """

    inner: Evaluator
    path: Path

    def evaluate(self, candidates: Sequence[Trace]) -> Sequence[Evaluation]:
        """What each costs, in order.

        Raises:
            OutputError: The file cannot be written.
        """
        found = self.inner.evaluate(candidates)
        lines = [_line(one, said) for one, said in zip(candidates, found, strict=True)]
        try:
            with self.path.open("a") as file:
                file.writelines(lines)
        except OSError as error:
            raise output_error(self.path, error) from error
        return found

    def for_part(self, mod: IRModule) -> LoggingEvaluator:
        """One for a part that appends to the same file."""
        return LoggingEvaluator(evaluator_of_part(self.inner, mod), self.path)


@dataclass(eq=False)
class ReplayEvaluator:
    """Answers from a file of a `LoggingEvaluator`; of what was measured several times, the first answer.

    Attributes:
        path: The file.

    Raises:
        DatabaseError: It cannot be read, or is no such file.
    """

    path: Path
    _known: dict[str, Evaluation] = field(default_factory=dict, init=False)
    _asked: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        try:
            lines = self.path.read_text().splitlines()
        except OSError as error:
            raise DatabaseError(f"cannot read {self.path}: {error.strerror}") from error
        for number, line in enumerate(lines, 1):
            try:
                digest, perf, fate = json.loads(line)
                found = Evaluation(float(perf), str(fate), is_new=False)
                self._known.setdefault(str(digest), found)
            except (ValueError, TypeError) as error:
                if number == len(lines):  # the run was ended while it wrote this one
                    continue
                raise DatabaseError(f"line {number} of {self.path} is no evaluation: {error}") from error

    def evaluate(self, candidates: Sequence[Trace]) -> list[Evaluation]:
        """What each cost then; what was not evaluated then has failed."""
        return [self._answer(structural_digest(one.out_mod)) for one in candidates]

    def _answer(self, digest: str) -> Evaluation:
        if digest not in self._known:
            return Evaluation(FAILED, f"not in {self.path}", is_new=False)
        is_first = digest not in self._asked
        self._asked.add(digest)
        return replace(self._known[digest], is_first=is_first)


def _line(candidate: Trace, said: Evaluation) -> str:
    facts = [structural_digest(candidate.out_mod), repr(said.perf), said.fate]
    return json.dumps(facts) + "\n"
