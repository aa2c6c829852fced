"""The gate of programs with registered operators: the reference decides, other engines confirm the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.onnx_models import model_of
from tests.registered_operators import (
    gated_inputs,
    gated_kernel,
    gated_module,
    gated_registered,
    gated_result,
    registered,
)

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, Op, post_order
from intarsia.measure.judge.gate import Gate, run_arrays
from intarsia.measure.judge.judged_program import judged_program
from intarsia.measure.judge.quorum import Panel
from intarsia.native import te
from intarsia.op.register_operator import first_input_type
from intarsia.passes import partition_whole
from intarsia.support.errors import CompileError
from intarsia.target import Target


def native_outputs(inputs: dict[str, Any]) -> list[Any]:
    with build(partition_whole(gated_module(), Target.for_toolchain("native"))) as executable:
        return list(run_arrays(executable, inputs))


def test_the_reference_judges_and_another_engine_confirms_the_rest() -> None:
    pytest.importorskip("onnxruntime")
    inputs = gated_inputs()
    with gated_registered():
        gate = Gate.for_module(gated_module(), inputs)
        assert gate.is_proven
        assert gate.reference.startswith(
            "onnx.reference with the registered reference of acme::Gated, "
            "confirmed by onnxruntime without optimisations"
        )
        assert gate.check(native_outputs(inputs)).passed
        assert gate.check([gated_result(inputs).astype(np.float32)]).passed


def test_a_kernel_that_disagrees_with_the_reference_is_rejected() -> None:
    def kernel(x: te.Tensor, gate: te.Tensor, up: te.Tensor, *, alpha: float) -> te.Tensor:
        return gated_kernel(x, gate, up, alpha=2 * alpha)

    inputs = gated_inputs()
    with gated_registered(compute=kernel):
        gate = Gate.for_module(gated_module(), inputs)
        assert gate.is_proven
        report = gate.check(native_outputs(inputs))
    assert not report.passed
    assert 'output "y"[' in report.message


def test_the_compute_rule_is_no_judge() -> None:
    """A wrong rule and a wrong reference that agree with each other would prove nothing."""
    with gated_registered():
        for judge in Panel(gated_module()).judges():
            program = judged_program(gated_module(), judge.target)
            (function,) = (
                function
                for function in program.graph_functions.values()
                for expr in post_order(function)
                if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.domain == "acme"
            )
            assert function.attrs["Compiler"] == "reference", judge.name


def test_what_a_judge_lacks_beside_the_operator_is_refused() -> None:
    text = "g (float[2,4,4] x) => (float[2] y) { h = acme.Same(x)\n y = Det(h) }"
    with registered("acme::Same", first_input_type, None, lambda x: x):
        module = from_onnx(model_of(text, imports='"acme": 1'))
        with pytest.raises(CompileError, match=r"native cannot compile this: it has no kernels for .* Det"):
            judged_program(module, Target.for_toolchain("native"))
