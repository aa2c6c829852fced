"""Imports what most candidates need, in the process that workers are forked from.

Without this, each worker would import passes and native's compiler anew, for a second or more. Engines start
threads, which a fork would break, and so may other packages with passes: these are left to the workers.
"""

import onnx

from intarsia.measure import candidate_task, kernel_times, race_task
from intarsia.measure.schedules import build_schedule, run_gpu_schedule, run_schedule
from intarsia.toolchain.native import build
from intarsia.transform.pass_packages import load_own_passes

__all__ = [
    "build",
    "build_schedule",
    "candidate_task",
    "kernel_times",
    "onnx",
    "race_task",
    "run_gpu_schedule",
    "run_schedule",
]

load_own_passes()
