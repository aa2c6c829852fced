"""Why a model is run as it is: who was tried for what, at what cost, and what became of it.

Plain records, which an artifact keeps as JSON; reading them needs nothing of the compiler. Times are
seconds of one run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from intarsia.driver.explain.explained_function import FunctionRecord, SearchRecord
from intarsia.driver.tuning_record import TuningRecord
from intarsia.support.errors import ArtifactError
from intarsia.support.number_ranges import parse_ranges
from intarsia.support.plain_record import from_plain, to_plain

VERSION: Final = 2
"""Of the records; raised when older software could misread them."""


@dataclass(frozen=True, slots=True)
class Border:
    """What a value costs that one toolchain writes and another one reads: a fixed part, and per byte."""

    writer: str
    reader: str
    fixed: float
    per_byte: float


@dataclass(frozen=True, slots=True)
class ContestRecord:
    """A way to run the whole model.

    Attributes:
        name: For tables.
        status: What became of it, in words.
        reason: Why, where it was not measured or cannot win.
        seconds: Its latency, if measured.
        ratio: Its latency over the winner's, if both were in the race.
        ratio_low: Lower end of the 95 % interval of the ratio, or None if it is open.
        ratio_high: Upper end.
        predicted: What the search predicted, if it did.
        is_whole: Whether one toolchain runs all of it.
        is_chosen: Whether it won.
    """

    name: str
    status: str
    reason: str
    seconds: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    predicted: float | None
    is_whole: bool
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Losses:
    """How far the search was off (seed collage_rfc), for the partitioning that it predicted to be the best.

    Attributes:
        subject: Name of that partitioning in the contest.
        predicted: What it was predicted to take.
        measured: What it takes, end to end.
        additive_error: Measured less predicted: costs were taken to add up.
        optimality_loss_low: Measured less that of the best that was measured: the true optimum is at least
            that good.
        optimality_loss_high: Measured less the lower bound of the search, if costs add up.
        own: The best toolchain that runs the whole model alone, or "".
        apparent_loss: Measured less that of `own`: below 0 where mixing pays.
    """

    subject: str
    predicted: float
    measured: float
    additive_error: float
    optimality_loss_low: float
    optimality_loss_high: float
    own: str
    apparent_loss: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a model is run as it is.

    Attributes:
        model: Its name.
        host: Digest of the machine's fingerprint.
        cpu: The machine's CPU.
        cores: Its usable cores.
        chosen: Name of the winner; "" if nothing was chosen.
        functions: What runs where, function by function, @main first.
        borders: What borders cost.
        run_seconds: What every run of a program costs besides its kernels.
        contest: All ways to run the whole model, the winner first.
        losses: How far the search was off, if its answer was measured.
        decisions: What the winner decided on the program first, in words.
        tuning: What tuning passes tried, a tree for each target.
        notes: What else is to be known, in sentences.
    """

    model: str
    host: str
    cpu: str
    cores: int
    chosen: str
    functions: tuple[FunctionRecord, ...]
    borders: tuple[Border, ...]
    run_seconds: float
    contest: tuple[ContestRecord, ...]
    losses: Losses | None
    decisions: tuple[str, ...]
    tuning: tuple[TuningRecord, ...]
    notes: tuple[str, ...]

    @property
    def search(self) -> SearchRecord | None:
        """The search in @main, if there was one."""
        return next((each.search for each in self.functions if each.name == "main"), None)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"version": VERSION, **to_plain(self)}

    def to_text(self) -> str:
        """As JSON, on one line."""
        return json.dumps(self.to_json(), separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_text(cls, text: str, where: str) -> Explanation:
        """The explanation that `to_text` wrote.

        Args:
            text: What was read.
            where: From where, for errors.

        Raises:
            ArtifactError: It is something else, or of another version.
        """
        try:
            data = json.loads(text)
            found = data.get("version") if isinstance(data, dict) else None
            if found == VERSION:
                explanation = from_plain(cls, data, "it")
                for each in (each for function in explanation.functions for each in function.regions):
                    parse_ranges(each.nodes or "0")
                return explanation
        except (ValueError, RecursionError) as error:
            raise ArtifactError(f"the explanation in {where} is damaged: {error}") from error
        raise ArtifactError(
            f"the explanation in {where} has version {json.dumps(found)}, expected {VERSION}",
            help="read it with the version of Intarsia that saved it, or tune the model again",
        )
