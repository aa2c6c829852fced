"""Schedules are built and kept under pass settings: what is measured under others is not taken for theirs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.native_workloads import matmul
from tests.searched_programs import random_programs, small_task, task_of
from tests.unit.autoschedule.measuring.test_database_records import STATES, TASK, worked

from intarsia.autoschedule.measuring import ScheduleDatabase
from intarsia.autoschedule.tuning.schedule_history import ScheduleHistory
from intarsia.autoschedule.tuning.schedule_log import samples_name
from intarsia.ir import GlobalVar, IRModule
from intarsia.measure.database import Database
from intarsia.measure.schedules.build_schedule import compile_steps
from intarsia.measure.schedules.code_size import stores_when_unrolled
from intarsia.measure.schedules.kernel_workload import KernelWorkload, kernel_digest
from intarsia.measure.schedules.schedule_kernel import ScheduleKernel, compile_schedule
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import with_state
from intarsia.support.digest import digest_text
from intarsia.support.errors import CompileError
from intarsia.target import Host
from intarsia.transform import PassContext, PassSettings

HERE = Host.detect()
UNROLLED = PassContext(config={"tir.UnrollLoop": {"auto_max_step": 64}})


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "measurements.db") as opened:
        yield opened


def test_measurements_are_found_under_the_settings_that_they_were_made_under(database: Database) -> None:
    with UNROLLED:
        there = ScheduleDatabase(database, HERE)
    there.keep(TASK, STATES[:2], [worked(0.1), worked(0.2)])
    here = ScheduleDatabase(database, HERE)
    assert here.records(TASK) == ()
    here.keep(TASK, STATES[2:3], [worked(0.3)])
    assert (len(here.records(TASK)), len(there.records(TASK))) == (1, 2)
    assert database.records_of(kernel_digest(TASK.dag))  # the key of the default settings


def test_the_history_of_the_default_settings_keeps_its_keys(database: Database) -> None:
    plain = ScheduleHistory(database, HERE)
    with UNROLLED:
        unrolled = ScheduleHistory(database, HERE)
    assert plain._key("a", 2) == digest_text(["1", HERE.digest, "a", "2"])
    assert unrolled._key("a", 2) != plain._key("a", 2)
    assert unrolled._measured is not None
    assert unrolled._measured.settings == PassSettings.of(UNROLLED)


def test_the_cost_model_learns_from_schedules_under_its_own_settings() -> None:
    assert samples_name(HERE, "2", PassSettings()) == f"samples-{HERE.digest}-2.npz"
    assert samples_name(HERE, "2", PassSettings.of(UNROLLED)) != f"samples-{HERE.digest}-2.npz"


@pytest.mark.parametrize(
    "context", [UNROLLED, PassContext(disabled_pass=["RegisterPromotion"])], ids=["config", "disabled"]
)
def test_a_worker_builds_under_the_settings_of_the_task(tmp_path: Path, context: PassContext) -> None:
    task = task_of(matmul(8, 8, 8))
    plain = KernelWorkload(task.dag, Isa.host()).write(tmp_path)
    with context:
        changed = KernelWorkload(task.dag, Isa.host()).write(tmp_path)
    built = [compile_steps(folder.path, [], task.layout_rewrite_option) for folder in (plain, changed)]
    first, second = map(code, built)
    assert first != second
    chosen = with_state(task.dag, LoopState.initial(task.dag), task.layout_rewrite_option)
    assert second == code(compile_schedule(chosen, Isa.host(), context=context))


def code(built: object) -> bytes:
    assert isinstance(built, ScheduleKernel)
    return built.kernel.object_code


def test_the_size_of_code_is_that_under_the_context() -> None:
    task = small_task("matmul")
    state = random_programs("matmul", 1, seed=6)[0]
    mod = IRModule({GlobalVar("f"): with_state(task.dag, state).lowered()})
    assert stores_when_unrolled(mod, "f", UNROLLED) > stores_when_unrolled(mod, "f")


def test_what_is_not_unrolled_is_not_refused_for_its_size() -> None:
    task = small_task("matmul")
    chosen = with_state(task.dag, LoopState.initial(task.dag))
    with pytest.raises(CompileError, match="more than 0"):
        compile_schedule(chosen, Isa.host(), 0)
    assert compile_schedule(chosen, Isa.host(), 0, PassContext(disabled_pass=["UnrollLoop"])).kernel
