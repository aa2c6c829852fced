"""ONNX's node tests in kernels for a Neoverse N1, executed by an emulator: the same results as here.

The kernels are built here, by `-mcpu=neoverse-n1`, and loaded by the wheel intarsia-runtime, which compiles
nothing: what runs is the code that was built.
"""

from __future__ import annotations

import functools
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.aarch64.emulated_machine import EmulatedMachine, missing_part
from tests.backend.cases import Case, onnx_cases
from tests.runtime_wheel import build_runtime_wheel

import intarsia as ia
from intarsia.runtime.self_test import SelfTest
from intarsia.support.errors import CompileError, ModelError

pytestmark = [
    pytest.mark.aarch64,
    pytest.mark.skipif(bool(missing_part()), reason=missing_part() or "it is there"),
]

TARGET = "cpu -toolchain=native -threads=2"
ELSEWHERE = f"{TARGET} -mcpu=neoverse-n1"
SHARDS = 8


@functools.cache
def cases() -> list[Case]:
    return [case for case in onnx_cases(("node",)) if _has_arrays_only(case)]


def _has_arrays_only(case: Case) -> bool:
    inputs, outputs = case.data_sets[0]
    return all(isinstance(value, np.ndarray) and value.dtype.kind != "O" for value in (*inputs, *outputs))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> EmulatedMachine:
    wheel = build_runtime_wheel(tmp_path_factory.mktemp("wheel"))
    return EmulatedMachine.of_wheel(wheel, tmp_path_factory.mktemp("packages"))


def save_case(case: Case, folder: Path) -> bool:
    """Save a case for the other machine, with this machine's results as its self test.

    Returns:
        Whether native compiles all of it.
    """
    inputs = tuple(case.data_sets[0][0])
    try:
        module = ia.from_onnx(case.model)
        here = ia.build(module, TARGET)
        outputs = tuple(np.asarray(value) for value in here.run_flat(*inputs))
        elsewhere = ia.build(module, ELSEWHERE)
    except (CompileError, ModelError):
        return False  # the backend suite is about what native covers
    elsewhere.save(folder / f"{case.name}.intarsia", self_test=SelfTest(inputs, outputs))
    return True


@pytest.mark.parametrize("shard", range(SHARDS))
def test_results_equal_those_of_this_machine(shard: int, machine: EmulatedMachine, tmp_path: Path) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        names = {case.name for case in cases()[shard::SHARDS] if save_case(case, tmp_path)}
    assert len(names) > 100
    done = machine.run(Path(__file__).parent / "check_artifacts.py", tmp_path)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    assert results.keys() == names
    wrong = {name: result for name, result in results.items() if isinstance(result, str) or result > 1}
    assert not wrong
