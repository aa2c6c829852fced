"""What workers do with a candidate: build it, and run it. Both return failures as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from intarsia.build import build
from intarsia.measure.candidate_kind import instantiate
from intarsia.measure.gate import run_arrays
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.timing import TimingPolicy, time_function
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.runtime.artifact_format import ArtifactFormat
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step of measuring ended.

    Attributes:
        error: OK, or what went wrong.
        message: For people, "" if nothing went wrong.
        costs: Seconds of a call, a number a repetition; of runs only.
        max_error: Largest difference to the reference result relative to its largest value; None if unknown.
    """

    error: MeasureError = MeasureError.OK
    message: str = ""
    costs: tuple[float, ...] = ()
    max_error: float | None = None


def build_candidate(folder: Path, target: str, kind: str, trace: PlainData, artifact: Path) -> Outcome:
    """Make the program of a candidate, compile it, and save it where runs find it."""
    workload = WorkloadFolder(folder)
    found = Target.parse(target)
    try:
        module = instantiate(workload.module(), found, Candidate(kind, trace))
    except MemoryError as error:
        return _failure(MeasureError.OUT_OF_MEMORY, error)
    except Exception as error:  # whatever an instantiator raises is a property of the candidate
        return _failure(MeasureError.INSTANTIATION, error)
    try:
        with build(module, found) as executable:
            executable.save(artifact, format=ArtifactFormat.DIRECTORY)
    except MemoryError as error:
        return _failure(MeasureError.OUT_OF_MEMORY, error)
    except Exception as error:  # as above, of the toolchains
        return _failure(MeasureError.COMPILE, error)
    return Outcome()


def run_candidate(folder: Path, artifact: Path, policy: TimingPolicy) -> Outcome:
    """Load a built candidate, compare its result with the reference, and time it."""
    workload = WorkloadFolder(folder)
    try:
        executable = load(artifact)
    except Exception as error:  # toolchains raise what they like
        return _failure(MeasureError.LOAD, error)
    with executable:
        try:
            return _measured(executable, workload, policy)
        except MemoryError as error:
            return _failure(MeasureError.OUT_OF_MEMORY, error)
        except Exception as error:  # as above
            return _failure(MeasureError.RUNTIME, error)


def _measured(executable: Executable, workload: WorkloadFolder, policy: TimingPolicy) -> Outcome:
    inputs = workload.inputs()
    report = workload.gate().check(run_arrays(executable, inputs))
    if not report.passed:
        return Outcome(MeasureError.WRONG_ANSWER, report.message, max_error=report.max_rel_error)
    arrays = [inputs[info.name] for info in executable.inputs]

    timing = time_function(lambda: executable.run_flat(*arrays), policy)
    return Outcome(costs=timing.samples, max_error=report.max_rel_error)


def _failure(kind: MeasureError, error: BaseException) -> Outcome:
    text = str(error) if isinstance(error, IntarsiaError) else f"{type(error).__name__}: {error}"
    return Outcome(kind, text.strip())
