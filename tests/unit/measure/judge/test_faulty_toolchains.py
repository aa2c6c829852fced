"""Toolchains that are right at first sight only."""

from __future__ import annotations

import numpy as np
import pytest
from tests.faulty_toolchains import FORGETFUL, Forgetful, Partial, Right

from intarsia.build import build
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge import examination
from intarsia.measure.judge.examination import examine, examine_buffers
from intarsia.measure.judge.gate import run_arrays
from intarsia.measure.judge.trials import trials_for
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.target import Target


def product(rows: int = 4) -> IRModule:
    x = Var("x", checked_type=TensorType((rows, 16), DType.FLOAT32))
    weight = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)
    return IRModule.from_expr(Function((x,), call("MatMul", x, Constant(weight))))


@pytest.mark.parametrize("toolchain", FORGETFUL)
def test_what_is_right_on_its_first_call_only_is_caught(toolchain: type[Forgetful]) -> None:
    module = product()
    trials = trials_for(module, random_inputs(module["main"]))
    with TOOLCHAINS.holding(toolchain.name, toolchain):
        executable = build(partition_whole(module, Target.for_toolchain(toolchain.name)))
        first = run_arrays(executable, trials[0].inputs)
        assert trials[0].gate.check(first).passed
        assert not examine(executable, trials).passed


@pytest.mark.parametrize("toolchain", FORGETFUL)
def test_what_was_right_when_it_was_timed_is_caught_in_its_buffers(toolchain: type[Forgetful]) -> None:
    module = product()
    trials = trials_for(module, random_inputs(module["main"]))
    with TOOLCHAINS.holding(toolchain.name, toolchain):
        executable = build(partition_whole(module, Target.for_toolchain(toolchain.name)))
        run_arrays(executable, trials[0].inputs)
        assert not examine_buffers(executable, trials).passed


def test_a_result_that_is_not_all_written_is_caught_in_poisoned_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Larger than COPIED_RESULT_BYTES, so that it is computed in the caller's memory.
    module = product(4096)
    trials = trials_for(module, random_inputs(module["main"]))
    with TOOLCHAINS.holding(Partial.name, Partial):
        executable = build(partition_whole(module, Target.for_toolchain(Partial.name)))
        report = examine_buffers(executable, trials)
        assert not report.passed
        assert report.message.startswith('in poisoned memory: output "output_0"[4095, 7] is nan, expected ')
        # In memory that holds the right result of an earlier call, it would pass.
        monkeypatch.setattr(examination, "poisoned", np.array)
        assert examine_buffers(executable, trials).passed


def test_what_is_always_right_passes() -> None:
    module = product()
    trials = trials_for(module, random_inputs(module["main"]))
    with TOOLCHAINS.holding(Right.name, Right):
        executable = build(partition_whole(module, Target.for_toolchain(Right.name)))
        assert examine(executable, trials).passed
        assert examine_buffers(executable, trials).passed
