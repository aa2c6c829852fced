"""Running ONNX's backend tests in worker processes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.backend.cases import CaseStore, onnx_cases
from tests.backend.pool import Heard, judge_all, worker_command
from tests.backend.result import Report
from tests.backend.verdict import Column

from intarsia.toolchain import usable_toolchains


def run_suite(
    columns: Sequence[Column] | None = None,
    names: Sequence[str] = (),
    workers: int | None = None,
    heard: Heard = lambda _: None,
) -> Report:
    """Run the backend tests.

    Args:
        columns: Columns in which cases are run; default: all with a usable toolchain.
        names: Names of the cases; all cases if it is empty.
        workers: Number of processes; one per usable core if not given.
        heard: Callback, called with each verdict.
    """
    with tempfile.TemporaryDirectory() as folder:
        cases = [case for case in onnx_cases() if not names or case.name in names]
        CaseStore(Path(folder)).write(cases)
        verdicts = judge_all(
            worker_command(Path(folder)),
            [case.name for case in cases],
            columns or usable_columns(),
            workers or len(os.sched_getaffinity(0)),
            heard=heard,
        )
    return Report(tuple(verdicts))


def usable_columns() -> tuple[Column, ...]:
    """All columns but those of a toolchain that is not usable here."""
    usable = {toolchain.name for toolchain in usable_toolchains()}
    engines = {Column.NATIVE, Column.ONNXRUNTIME, Column.OPENVINO}
    return tuple(column for column in Column if column in usable or column not in engines)
