"""Places to measure candidates of Collage in no time; workers know the faulty toolchains."""

from __future__ import annotations

from pathlib import Path

from tests.unit.measure.quick_testbed import HOST, POLICY

from intarsia.measure.database import Database
from intarsia.measure.measure_result import MeasureResult
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed

AT_HAND = "tests.faulty_toolchains_at_hand"


def collage_testbed(
    parent: Path | None = None, run_seconds: float = 60.0, preload: tuple[str, ...] = ()
) -> LocalTestbed:
    """A testbed of two builders with few repeats.

    Args:
        parent: Parent of its folder; default: the folder for temporary files.
        run_seconds: Time limit of one run.
        preload: Further modules that workers import at the beginning.
    """
    limits = TestbedLimits(60.0, run_seconds, policy=POLICY, turn=POLICY)
    modules = (AT_HAND, "onnx.reference", *preload)
    return LocalTestbed.open(HOST, workers=2, limits=limits, preload=modules, parent=parent)


def measurements_in(database: Database) -> list[MeasureResult]:
    """Every measurement that a database keeps."""
    workloads = dict.fromkeys(each.workload for each in database.summaries())
    records = [record for workload in workloads for record in database.records_of(workload)]
    return [each.result for record in records for each in record.measurements]
