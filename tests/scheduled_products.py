"""Small programs of native kernels, with stored results of schedule searches."""

from __future__ import annotations

import numpy as np

from intarsia.autoschedule.extraction import ExtractedTask, extract_tasks
from intarsia.autoschedule.tuning.schedule_history import KeptSchedule, ScheduleHistory
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.measure.database import Database
from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.schedule_log import history_text
from intarsia.op import call
from intarsia.target import Target
from intarsia.toolchain.this_host import this_host

NATIVE = Target("cpu -toolchain=native -threads=1")
REFERENCE = Target("cpu -toolchain=reference")
WEIGHT = np.random.default_rng(0).standard_normal((16, 24)).astype(np.float32)


def product(operator: str = "Relu") -> IRModule:
    """Return a matrix product with an operator behind it."""
    x = Var("x", checked_type=TensorType((8, 16), DType.FLOAT32))
    return IRModule.from_expr(Function((x,), call(operator, call("MatMul", x, Constant(WEIGHT)))))


def with_winner(module: IRModule, database: Database) -> tuple[ExtractedTask, ...]:
    """Store the loops as they are declared as the fastest schedule of each kernel."""
    tasks, history = extract_tasks(module, NATIVE), ScheduleHistory(database, this_host())
    for task in tasks:
        history.keep(task, KeptSchedule(history_text(LoopState.initial(task.task.dag)), 1e-6, 2e-6, 9))
    return tasks
