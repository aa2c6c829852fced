"""Passes and transformations of this package are found by name in a new process."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.tuning_passes import CostTable

from intarsia.collage.tune_device_placement import CopyCost, TuneDevicePlacement
from intarsia.ir import structural_digest
from intarsia.ir.parser import parse_module
from intarsia.op.infer import infer_types
from intarsia.tune import Trace, TuningContext

PROGRAM = "def @main(%x: Tensor[(4, 4), float32]) { Neg(MatMul(Relu(%x), %x)) }"
DEVICES = tuple(f'VirtualDevice(cpu:{number}, target="cpu -toolchain=reference")' for number in (0, 1))

UNREGISTERED = """
import importlib, pkgutil
import intarsia
from intarsia.transform import pass_names
from intarsia.tune.transformations import CONSTRAINTS, TRANSFORMATIONS

found = [set(pass_names()), set(TRANSFORMATIONS), set(CONSTRAINTS)]
for module in pkgutil.walk_packages(intarsia.__path__, "intarsia."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "kserve"):
            raise
for before, after in zip(found, (pass_names(), TRANSFORMATIONS, CONSTRAINTS)):
    print(*sorted(set(after) - before))
"""

REPLAY = """
import sys
from intarsia.ir import structural_digest
from intarsia.ir.parser import parse_module
from intarsia.op.infer import infer_types
from intarsia.tune.trace import Trace

program, trace = sys.argv[1:]
print(structural_digest(Trace.from_json(trace, infer_types(parse_module(program))).out_mod))
"""


def run_python(script: str, *args: str) -> str:
    done = subprocess.run([sys.executable, "-c", script, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_whatever_registers_itself_is_announced() -> None:
    """Importing every module adds no name to those that a new process finds by its entry points."""
    assert run_python(UNREGISTERED).split() == []


@pytest.mark.slow
def test_a_placement_on_devices_is_replayed_in_a_new_process() -> None:
    mod = infer_types(parse_module(PROGRAM))
    tuning = TuneDevicePlacement(devices=DEVICES, copy_cost=CopyCost(), eval_passes=())
    trace = tuning.tune(Trace(mod), TuningContext(CostTable(_favour_devices)))
    assert trace.out_mod is not mod
    assert run_python(REPLAY, PROGRAM, trace.to_json()).strip() == structural_digest(trace.out_mod)


def _favour_devices(mod: object) -> float:
    return 1.0 if "device" in str(mod) else 2.0
