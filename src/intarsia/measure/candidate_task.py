"""The tasks of workers: build a candidate, and run it. Both return failures as plain data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final

from intarsia.build import build
from intarsia.measure.candidate_kind import instantiate
from intarsia.measure.judge.accuracy import head_of_text, judged_trials
from intarsia.measure.judge.examination import examine, examine_buffers
from intarsia.measure.judge.gate import run_arrays
from intarsia.measure.judge.gate_report import InputSetError
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.sized_calls import sized_calls, time_calls
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.measure.wrong_answers import note_wrong_answer
from intarsia.runtime.artifact_format import ArtifactFormat
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.support.errors import CompileError, IntarsiaError, OutputError, causes
from intarsia.support.files import is_out_of_space
from intarsia.target import Target

_NO_MEMORY: Final = (
    "std::bad_alloc",
    "bad allocation",
    "Failed to allocate memory",
    "Cannot allocate memory",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a step of a measurement.

    Attributes:
        error: OK, or the kind of failure.
        message: Message for users; "" without a failure.
        costs: Seconds of a call, one for each repetition; empty for builds. If one of them is no finite
            number of 0 or more, the outcome is a failure.
        max_error: Largest difference from the reference result relative to its largest value; None if
            unknown.
        errors: Errors on each input set that it was checked on.
        parts: Outcomes of the candidates, in order, of a step that measures several together.
    """

    error: MeasureError = MeasureError.OK
    message: str = ""
    costs: tuple[float, ...] = ()
    max_error: float | None = None
    errors: tuple[InputSetError, ...] = ()
    parts: tuple[Outcome, ...] = ()

    def __post_init__(self) -> None:
        """Make a failure of what is no cost: NaN and negative numbers would win every comparison."""
        wrong = [cost for cost in self.costs if not 0 <= cost < inf]
        if wrong:
            object.__setattr__(self, "costs", ())
            object.__setattr__(self, "error", MeasureError.UNKNOWN)
            message = f"a call took {wrong[0]:g} s; expected a finite number, 0 or more"
            object.__setattr__(self, "message", message)


def build_candidate(folder: Path, target: str, kind: str, trace: PlainData, artifact: Path) -> Outcome:
    """Instantiate a candidate, compile it, and save the artifact for runs.

    All of it happens under the pass settings of the workload.

    Raises:
        OutputError: The disk is full or cannot be written, which is no fault of the candidate.
    """
    workload = WorkloadFolder(folder)
    parsed_target = Target.parse(target)
    try:
        context = workload.settings().context()
        with context:
            module = instantiate(workload.module(), parsed_target, Candidate(kind, trace))
    except CompileError as error:  # a program that the toolchain refuses before it sees it
        return failure_outcome(MeasureError.COMPILE, error)
    except Exception as error:  # whatever an instantiator raises is a property of the candidate
        return failure_outcome(MeasureError.INSTANTIATION, error)
    try:
        with context, build(module, parsed_target) as executable:
            executable.save(artifact, format=ArtifactFormat.DIRECTORY)
    except Exception as error:  # as above, of the toolchains
        if isinstance(error, OutputError) and is_out_of_space(error):
            raise
        return failure_outcome(MeasureError.COMPILE, error)
    return Outcome()


def run_candidate(folder: Path, target: str, artifact: Path, policy: TimingPolicy) -> Outcome:
    """Load a built candidate, compare its result with the reference, and time it."""
    return _load_and_use(
        artifact, lambda executable: _check_and_time(WorkloadFolder(folder), target, executable, policy)
    )


def _load_and_use(artifact: Path, use: Callable[[Executable], Outcome]) -> Outcome:
    try:
        executable = load(artifact)
    except Exception as error:  # toolchains raise what they like
        return failure_outcome(MeasureError.LOAD, error)
    with executable:
        try:
            return use(executable)
        except Exception as error:  # as above
            return failure_outcome(MeasureError.RUNTIME, error)


def _check_and_time(
    workload: WorkloadFolder, target: str, executable: Executable, policy: TimingPolicy
) -> Outcome:
    checked = check_candidate(workload, target, executable)
    if checked.error is not MeasureError.OK:
        return checked
    costs = time_calls(sized_calls(workload, executable), policy)
    after = check_candidate(workload, target, executable, is_timed=True)
    if after.error is not MeasureError.OK:
        return after
    return Outcome(costs=costs, max_error=checked.max_error, errors=checked.errors)


def check_candidate(
    workload: WorkloadFolder, target: str, executable: Executable, *, is_timed: bool = False
) -> Outcome:
    """Check a candidate's results against the reference, within the error bound of its program if it has one.

    Errors of the candidate propagate.

    Args:
        workload: Workload with the expected results.
        target: Text of its target.
        executable: The candidate.
        is_timed: Whether it was timed since its last check: then inputs change, and its outputs are in
            poisoned
            memory.
    """
    trials = judged_trials(workload.trials(), head_of_text(executable.program))
    report = (examine_buffers if is_timed else examine)(executable, trials)
    if report.passed:
        return Outcome(max_error=report.max_rel_error, errors=report.by_inputs)
    outputs = run_arrays(executable, trials[0].inputs)
    agreeing = note_wrong_answer(workload, target, outputs, trials[0].gate)
    doubt = f"; {agreeing!r} agrees with it, so that the reference may be wrong" if agreeing else ""
    message, errors = report.message + doubt, report.by_inputs
    return Outcome(MeasureError.WRONG_ANSWER, message, max_error=report.max_rel_error, errors=errors)


def failure_outcome(kind: MeasureError, error: BaseException) -> Outcome:
    """Return a failure as an outcome with one line; OUT_OF_MEMORY for any failure for want of memory."""
    if _is_for_want_of_memory(error):
        kind = MeasureError.OUT_OF_MEMORY
    if not isinstance(error, IntarsiaError):
        return Outcome(kind, f"{type(error).__name__}: {error}".strip())
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    return Outcome(kind, error.problem + notes + (f" ({error.help})" if error.help else ""))


def _is_for_want_of_memory(error: BaseException) -> bool:
    """Return whether a lack of memory caused an error, by its causes and their messages."""
    return any(
        isinstance(cause, MemoryError) or any(words in str(cause) for words in _NO_MEMORY)
        for cause in causes(error)
    )
