"""Computing the reference result of a workload in a worker: engines are foreign code, there too."""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path

from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.errors import ExecutionError, IntarsiaError


def reference_problem(path: Path) -> IntarsiaError | None:
    """Add the reference result to a workload's folder; why that is impossible, if it is."""
    try:
        WorkloadFolder(path).add_reference()
    except IntarsiaError as error:
        return error
    return None


def add_reference(pool: Executor, path: Path) -> None:
    """Have a worker add the reference result to a workload's folder.

    Raises:
        IntarsiaError: Not even the reference computes the program.
    """
    try:
        problem = pool.submit(reference_problem, path).result()
    except IntarsiaError as error:  # of the worker: it crashed, or was stopped
        raise ExecutionError(f"the reference result cannot be computed: {error.problem}") from error
    if problem is not None:
        raise problem
