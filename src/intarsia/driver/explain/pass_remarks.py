"""Remarks of the passes that make a winner's program: what they declined, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from intarsia.build.kernel_table import COMPILER, is_marked, marked_target
from intarsia.ir import IRModule, with_fields
from intarsia.measure.candidate_kind import instantiate
from intarsia.measure.measure_input import MeasureInput
from intarsia.report.run_records import RemarkRecord, RemarkSubject
from intarsia.toolchain.native.simplified import simplified
from intarsia.toolchain.native.toolchain import Native
from intarsia.transform.instrument import Diagnostics


def instantiate_with_remarks(winner: MeasureInput) -> tuple[IRModule, tuple[RemarkRecord, ...]]:
    """Return the program of a winner, and the remarks of the passes that make it.

    The passes are those of the winner's decisions, and those that native runs on its functions before it
    compiles them. Workers ran the same passes before, without an instrument for remarks.

    Args:
        winner: Measure input of the winner.
    """
    diagnostics = Diagnostics()
    workload = winner.workload
    with workload.settings.context([diagnostics]) as context:
        program = instantiate(workload.module, winner.target, winner.candidate)
        for function in program.graph_functions.values():
            if is_marked(function) and marked_target(function).toolchain == Native.name:
                # Passes leave functions of toolchains alone; native runs them on the source, without marks.
                unmarked = with_fields(function, attrs=function.attrs.updated(**{COMPILER: None}))
                simplified(unmarked, context.inner())
        return program, group_remarks(diagnostics.records())


def group_remarks(records: Iterable[Mapping[str, Any]]) -> tuple[RemarkRecord, ...]:
    """Return remarks in the order of their first statement; those with the same text are one.

    Args:
        records: Remarks as plain data (`Diagnostics.records`).
    """
    subjects: dict[tuple[str, str, str], dict[RemarkSubject, None]] = {}
    for record in records:
        notes = tuple(f"{_described(note)} {note['text']}" for note in record["notes"])
        subject = RemarkSubject(str(record["operator"]), record["node"] or "", notes)
        key = str(record["pass"]), str(record["level"]), str(record["text"])
        subjects.setdefault(key, {})[subject] = None
    return tuple(RemarkRecord(*key, tuple(values)) for key, values in subjects.items())


def _described(note: Mapping[str, Any]) -> str:
    node = f" (node {note['node']!r})" if note["node"] else ""
    return f"{note['operator']}{node}"
