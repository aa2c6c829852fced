"""Imports what most candidates need, in the process that workers are forked from.

Passes that candidates replay are found by their packages; native's compiler is loaded by the first build.
Without this, each worker would import them anew, for a second or more. Engines start threads, which a fork
would break: they are left to the workers.
"""

import onnx

from intarsia.measure import candidate_task, kernel_times, race_task
from intarsia.toolchain.native import build
from intarsia.transform.pass_packages import load_pass_packages

__all__ = ["build", "candidate_task", "kernel_times", "onnx", "race_task"]

load_pass_packages()
