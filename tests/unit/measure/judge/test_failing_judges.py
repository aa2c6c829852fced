"""Judges that raise, refuse a program, or are left alone with their result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import ClassVar

import numpy as np
import pytest
from tests.faulty_toolchains import Failing, Refusing, Wrong

from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.quorum import Panel
from intarsia.op import call
from intarsia.runtime.kernel import TOOLCHAINS, Kernel
from intarsia.support.errors import ExecutionError
from intarsia.target import Target
from intarsia.toolchain.reference.toolchain import Reference

ENGINES = ("reference", "onnxruntime", "openvino")


class FailingToCompile(Reference):
    """Raises while compiling what no engine should raise."""

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        raise RuntimeError("boom")


@contextmanager
def holding(conducts: Mapping[str, type[Reference]]) -> Iterator[None]:
    """Toolchains of other conduct in the place of engines."""
    with ExitStack() as stack:
        for engine, conduct in conducts.items():

            class Stand(conduct):  # type: ignore[valid-type,misc]  # the base is chosen at run time
                name: ClassVar[str] = engine

            stack.enter_context(TOOLCHAINS.holding(engine, Stand))
        yield


def product() -> IRModule:
    x = Var("x", checked_type=TensorType((4, 16), DType.FLOAT32))
    weight = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)
    return IRModule.from_expr(Function((x,), call("MatMul", x, Constant(weight))))


def lookup(rows: int = 5) -> IRModule:
    ids = Var("ids", checked_type=TensorType((6,), DType.INT64))
    table = Constant(np.random.default_rng(0).standard_normal((rows, 4)).astype(np.float32))
    return IRModule.from_expr(Function((ids,), call("Gather", table, ids)))


def test_the_last_judge_proves_nothing_if_others_fail() -> None:
    module = product()
    inputs = random_inputs(module["main"])
    with holding({**dict.fromkeys(ENGINES, Failing), "native": Wrong}):
        gate = Gate.for_module(module, inputs)
    assert not gate.is_proven
    assert "; failed: openvino (the engine lost its nerve)" in gate.reference
    report = gate.check(gate.expected)
    assert not report.passed
    assert report.verdict == "unproven"
    assert report.message == (
        "the expected result is unproven: only native without fusion computes it, "
        "and openvino fails (the engine lost its nerve)"
    )


def test_one_judge_counts_if_the_others_cannot_compile_the_program() -> None:
    module = product()
    inputs = random_inputs(module["main"])
    with holding(dict.fromkeys(("onnxruntime", "openvino", "native"), Refusing)):
        gate = Gate.for_module(module, inputs)
    assert gate.is_proven
    assert gate.check(gate.expected).passed
    assert gate.reference.startswith("onnx.reference; cannot compile it: onnxruntime without optimisations (")


@pytest.mark.parametrize("engine", ["reference", "onnxruntime"])
def test_a_judge_that_raises_anything_while_compiling_is_left_out(engine: str) -> None:
    module = product()
    with holding({engine: FailingToCompile}):
        gate = Gate.for_module(module, random_inputs(module["main"]))
    assert gate.is_proven
    assert "confirmed by openvino" in gate.reference


def test_the_reason_of_a_judge_that_cannot_compile_is_told() -> None:
    module = product()
    with holding({"reference": FailingToCompile, **dict.fromkeys(("openvino", "native"), Refusing)}):
        gate = Gate.for_module(module, random_inputs(module["main"]))
    assert "; cannot compile it: onnx.reference (RuntimeError while compiling: boom)" in gate.reference


def test_a_judge_that_fails_is_told_and_outnumbered() -> None:
    module = product()
    with holding({"onnxruntime": Failing}):
        gate = Gate.for_module(module, random_inputs(module["main"]))
    assert gate.is_proven
    assert gate.reference.startswith("onnx.reference, confirmed by openvino (")
    assert gate.reference.endswith("; failed: onnxruntime without optimisations (the engine lost its nerve)")


def test_native_as_a_judge_does_not_clamp_an_index_out_of_range() -> None:
    module = lookup()
    with Panel(module) as panel:
        native = next(judge for judge in panel.judges() if judge.group == "native")
        assert isinstance(panel.run(native, {"ids": np.array([0, 1, 2, 3, 4, 7])}), ExecutionError)
        assert not isinstance(panel.run(native, {"ids": np.array([0, 1, 2, 3, 4, 4])}), ExecutionError)
