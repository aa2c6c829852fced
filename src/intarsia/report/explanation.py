"""Explanation of a tuning result: candidates, their costs and their outcomes.

Plain records, which artifacts store as JSON; reading them does not load the compiler. Times are
seconds of one run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from intarsia.report.explained_function import FunctionRecord, SearchRecord
from intarsia.report.run_records import (
    GraphNode,
    InputSetDeviation,
    OutputDeviation,
    PassShareRecord,
    RemarkRecord,
    RunRequest,
    StageSeconds,
    TrialRecord,
)
from intarsia.report.tuning_record import TuningRecord
from intarsia.support.errors import ArtifactError
from intarsia.support.number_ranges import parse_ranges
from intarsia.support.plain_record import from_plain, to_plain

VERSION: Final = 2
"""Version of the records; raised when older software could misread them."""


@dataclass(frozen=True, slots=True)
class Border:
    """Cost of a value that one toolchain writes and another one reads: seconds fixed, and per byte."""

    writer: str
    reader: str
    fixed: float
    per_byte: float


@dataclass(frozen=True, slots=True)
class ContestRecord:
    """A candidate for the whole model.

    Attributes:
        name: Name for tables.
        status: Outcome, in words.
        reason: Reason why it was not measured or cannot win.
        seconds: Latency, if measured.
        ratio: Latency relative to the winner's, if both were in the race.
        ratio_low: Lower end of the 95 % interval of the ratio, or None if it is open.
        ratio_high: Upper end of the interval.
        predicted: Latency that the search predicted, if it did.
        is_whole: Whether one toolchain runs all of it.
        is_chosen: Whether it won.
        target: Text of the target.
        measure_seconds: Seconds of building, checking and timing it, if it was measured.
        max_error: Largest difference from the reference relative to its largest value, if compared; None also
            if it is infinite.
        by_size: Sizes of the symbolic dimensions as text, with the latency at them in the race.
        errors: Errors on each input set; empty if it was not checked or written by a version without them.
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
    target: str = ""
    measure_seconds: float | None = None
    max_error: float | None = None
    by_size: tuple[tuple[str, float], ...] = ()
    errors: tuple[InputSetDeviation, ...] = ()


@dataclass(frozen=True, slots=True)
class Losses:
    """Errors of the search (seed collage_rfc) for the partitioning with the best prediction.

    Attributes:
        subject: Name of the partitioning in the contest.
        predicted: Predicted latency.
        measured: End-to-end latency.
        additive_error: Measured minus predicted latency: the error of assuming that costs are additive.
        optimality_loss_low: Measured latency minus the best measured one: the true optimum is at least
            that good.
        optimality_loss_high: Measured latency minus the lower bound of the search, if costs are additive.
        own: Best toolchain that runs the whole model alone, or "".
        apparent_loss: Measured latency minus that of `own`: below 0 where mixing toolchains pays off.
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
    """Explanation of a tuning result.

    Attributes:
        model: Name of the model.
        host: Digest of the machine's fingerprint.
        cpu: CPU model of the machine.
        cores: Usable cores of the machine.
        chosen: Name of the winner; "" if nothing was chosen.
        functions: Regions of each function, @main first.
        borders: Boundary costs between toolchains.
        run_seconds: Overhead of a run besides its kernels.
        contest: Candidates for the whole model, the winner first.
        losses: Errors of the search, if its result was measured.
        decisions: Decisions on the program that the winner starts with, in words.
        tuning: Candidates of tuning passes, a tree for each target.
        notes: Further remarks, in sentences.
        workload: Digest of the model with its inputs; "" in explanations of versions without it, which also
            lack what follows.
        graph: Parameters and operators of @main in the program that was tuned.
        request: Options of the run.
        stages: Wall-clock seconds of the stages of the run.
        trials: Measurements that the run used, in order.
        shares: Shares of the tuning passes in the budget.
        errors: Errors of the winner by output and input set.
        remarks: Remarks of the passes that made the winner's program.
        undecided: Functions of the program before the winner's decisions, if its parts were searched, with
            the regions of the mix that is the cheapest by parts.
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
    workload: str = ""
    graph: tuple[GraphNode, ...] = ()
    request: RunRequest | None = None
    stages: tuple[StageSeconds, ...] = ()
    trials: tuple[TrialRecord, ...] = ()
    shares: tuple[PassShareRecord, ...] = ()
    errors: tuple[OutputDeviation, ...] = ()
    remarks: tuple[RemarkRecord, ...] = ()
    undecided: tuple[FunctionRecord, ...] = ()

    @property
    def search(self) -> SearchRecord | None:
        """Search record of @main, if it was searched."""
        return next((function.search for function in self.functions if function.name == "main"), None)

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain data."""
        return {"version": VERSION, **to_plain(self)}

    def to_text(self) -> str:
        """Return the explanation as JSON on one line."""
        return json.dumps(self.to_json(), separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_text(cls, text: str, where: str) -> Explanation:
        """Parse an explanation that `to_text` wrote.

        Args:
            text: JSON text.
            where: Name of the source, for error messages.

        Raises:
            ArtifactError: The text is damaged, or of another version.
        """
        try:
            data = json.loads(text)
            version = data.get("version") if isinstance(data, dict) else None
            if version == VERSION:
                explanation = from_plain(cls, data, "it")
                for region in (region for function in explanation.functions for region in function.regions):
                    # Fails here for a damaged range, not later in a report.
                    parse_ranges(region.nodes or "0")
                return explanation
        except (ValueError, RecursionError) as error:
            raise ArtifactError(f"the explanation in {where} is damaged: {error}") from error
        raise ArtifactError(
            f"the explanation in {where} has version {json.dumps(version)}, expected {VERSION}",
            help="read it with the version of Intarsia that saved it, or tune the model again",
        )
