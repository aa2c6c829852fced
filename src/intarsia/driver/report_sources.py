"""What reports are made from: artifacts, runs in a database, and profiles of winners."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from intarsia.driver.kept_run import KeptRun
from intarsia.measure.database import Database
from intarsia.report.explanation import Explanation
from intarsia.report.report_source import ReportSource
from intarsia.runtime.artifact_load import read_explanation, read_host
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.runtime.profile import Profile
from intarsia.support.errors import IntarsiaError, UsageError

PROFILE_SECONDS: Final = 2.0
"""Seconds of profiled runs of a winner; as many are made without a profiler."""

_FEWEST_RUNS: Final = 3
_MOST_RUNS: Final = 20

_TUNE: Final = "intarsia tune MODEL writes artifacts that contain one"


def source_of_artifact(path: Path, load: Callable[[Path], Executable] | None) -> ReportSource:
    """Return what a report of an artifact is made from.

    Args:
        path: The artifact.
        load: Function that loads it, for a profile of its kernels; None to read the records only.

    Raises:
        ArtifactError: It is no artifact, or damaged.
        UsageError: It contains no explanation.
    """
    text = read_explanation(path)
    if text is None:
        raise UsageError(f"{path} contains no explanation", help=_TUNE)
    explanation = Explanation.from_text(text, str(path))
    origin, host = f"Made from the artifact {path}.", read_host(path)
    if load is None:
        return ReportSource(explanation, origin, host, profile_gap="No profile was requested.")
    try:
        executable = load(path)
    except IntarsiaError as error:
        gap = f"The artifact cannot be run here, so that there is no profile: {error.problem}."
        return ReportSource(explanation, origin, host, profile_gap=gap)
    with executable:
        test = executable.saved_test
        profile, gap = (
            (None, "The artifact has no inputs for a profile.")
            if test is None
            else winner_profile(executable, test.inputs)
        )
    return ReportSource(explanation, origin, host, profile=profile, profile_gap=gap)


def source_of_database(database: Database, where: str, model: str = "") -> ReportSource:
    """Return what a report of the newest finished run in a database is made from.

    Args:
        database: The database.
        where: Its name, for the report and for errors.
        model: Name of the model, or the beginning of the digest of its workload; "" for any.

    Raises:
        UsageError: There is no such run.
        DatabaseError: It cannot be read.
    """
    names: dict[str, None] = {}
    for record in database.runs():
        try:
            run = KeptRun.from_text(record.outcome)
        except ValueError:  # of another version
            continue
        name = run.explanation.model
        names[name] = None
        if model and model != name and not record.workload.startswith(model):
            continue
        host = database.host(record.host)
        return ReportSource(
            run.explanation,
            f"Made from the newest run of {name} in the database {where}.",
            {} if host is None else host.to_json(),
            finished_at=record.finished_at,
            profile_gap="A database holds no program that could be profiled: make the report of an artifact.",
        )
    raise UsageError(
        f"the database {where} has no finished run" + (f" of {model!r}" if model else ""),
        help=f"it has runs of {', '.join(names)}" if names else "intarsia tune MODEL stores its run",
    )


def winner_profile(executable: Executable, inputs: Sequence[Array]) -> tuple[Profile | None, str]:
    """Return the profile of an executable, or None and why there is none."""
    try:
        start = time.perf_counter()
        executable.run_flat(*inputs)
        latency = max(time.perf_counter() - start, 1e-6)
        repeats = max(_FEWEST_RUNS, min(_MOST_RUNS, int(PROFILE_SECONDS / latency)))
        return executable.profile(*inputs, repeats=repeats), ""
    except IntarsiaError as error:
        return None, f"The winner cannot be profiled here: {error.problem}."
