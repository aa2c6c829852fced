"""Schedules of a program's GPU kernels are measured where there is a GPU; here a fake one, in workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.gpu_on_cpu import at_hand
from tests.gpu_on_cpu.fake_machine import machine_with_gpus
from tests.scheduled_products import product
from tests.unit.measure.quick_testbed import HOST, POLICY

from intarsia.autoschedule.tuning.schedule_records import ScheduleRow, ScheduleRows
from intarsia.autoschedule.tuning.tune_schedule import TuneSchedule
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.target import Target
from intarsia.tune import MeasuringEvaluator, TuningContext

pytestmark = pytest.mark.processes
GPU = Target("cuda -toolchain=native")


def test_a_tuning_pass_measures_schedules_on_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    limits = TestbedLimits(policy=POLICY, turn=POLICY)
    with (
        machine_with_gpus(),
        Database.open(tmp_path / "measurements.db") as database,
        LocalTestbed.open(HOST, workers=1, limits=limits, preload=(at_hand.__name__,)) as testbed,
    ):
        judge = MeasuringEvaluator(Workload(product()), GPU, Measurer(testbed, database))
        ctx = TuningContext(judge)
        TuneSchedule(seconds=30, trials=4, share=1)(product(), ctx)
        again = TuningContext(MeasuringEvaluator(Workload(product()), GPU, Measurer(testbed, database)))
        TuneSchedule(seconds=30, trials=4, share=1)(product(), again)
    (row,) = (
        row for note in ctx.node.children[0].notes if isinstance(note, ScheduleRows) for row in note.rows
    )
    assert row.trials == 4
    assert row.default_seconds is not None
    assert not row.failed
    (kept,) = (
        row for note in again.node.children[0].notes if isinstance(note, ScheduleRows) for row in note.rows
    )
    assert kept.trials == 4
    assert kept.default_seconds is not None


def rows_of(ctx: TuningContext) -> list[ScheduleRow]:
    """The rows of the kernels that were searched."""
    notes = ctx.node.children[0].notes
    return [row for note in notes if isinstance(note, ScheduleRows) for row in note.rows]
