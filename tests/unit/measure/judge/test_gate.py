"""The reference result and the check against it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from tests.faulty_toolchains import Wrong
from tests.recurrent_layers import recurrent_model

import intarsia as ia
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Attrs, Constant, DType, Function, IRModule, TensorType, Tuple, Var
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge import quorum
from intarsia.measure.judge.gate import Gate, run_arrays
from intarsia.op import call, tuple_get
from intarsia.passes import partition_whole
from intarsia.runtime.kernel import TOOLCHAINS

pytestmark = pytest.mark.quick_tests(7, also=["test_results_that_agree_against_the_reference_are_found"])


def product() -> IRModule:
    x = Var("x", checked_type=TensorType((4, 16), DType.FLOAT32))
    weight = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)
    parts = call("Split", call("MatMul", x, Constant(weight)), outputs=2, axis=1, num_outputs=2)
    return IRModule.from_expr(Function((x,), Tuple((tuple_get(parts, 0), tuple_get(parts, 1)))))


class WrongOpenVino(Wrong):
    """Stands in for OpenVINO."""

    name: ClassVar[str] = "openvino"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every program as a large one."""
    monkeypatch.setattr(quorum, "SMALL_SECONDS", 0.0)


def test_a_small_program_is_computed_by_the_definition_and_confirmed() -> None:
    module = product()
    inputs = random_inputs(module["main"])
    gate = Gate.for_module(module, inputs)
    assert gate.reference.startswith(
        "onnx.reference, confirmed by onnxruntime without optimisations (difference "
    )
    assert gate.names == ("output_0", "output_1")
    assert gate.check(gate.expected).passed


@pytest.mark.parametrize("toolchain", ["onnxruntime", "openvino"])
def test_engines_pass(toolchain: str) -> None:
    module = product()
    inputs = random_inputs(module["main"])
    executable = ia.build(partition_whole(module, ia.Target.for_toolchain(toolchain)))
    assert Gate.for_module(module, inputs).check(run_arrays(executable, inputs)).passed


def test_a_small_error_does_not_pass() -> None:
    module = product()
    gate = Gate.for_module(module, random_inputs(module["main"]))
    changed = [array.copy() for array in gate.expected]
    changed[1][2, 3] += 1e-3
    report = gate.check(changed)
    assert not report.passed
    assert report.worst is not None
    assert (report.worst.output, report.worst.index) == ("output_1", (2, 3))


def root_and_negative(*outputs: str) -> IRModule:
    x = Var("x", checked_type=TensorType((2,), DType.FLOAT32))
    fields = {"root": call("Sqrt", x), "negative": call("Neg", x)}
    main = Function((x,), Tuple(tuple(fields[name] for name in outputs)), Attrs({"output_names": outputs}))
    return IRModule.from_expr(main)


def test_nan_everywhere_proves_nothing() -> None:
    inputs = {"x": np.array([-1, -2], np.float32)}
    gate = Gate.for_module(root_and_negative("root"), inputs)
    report = gate.check(gate.expected)
    assert not report.passed
    assert report.message == (
        "every output of the reference is NaN, so that nothing can be verified; "
        "give inputs for which the model computes numbers"
    )
    assert not gate.check([np.zeros(2, np.float32)]).passed


def test_nan_in_all_of_one_output_is_told() -> None:
    inputs = {"x": np.array([-1, -2], np.float32)}
    gate = Gate.for_module(root_and_negative("root", "negative"), inputs)
    assert gate.reference == (
        "onnx.reference, confirmed by onnxruntime without optimisations (difference 0.0e+00); "
        'NaN in all of output "root", which proves nothing of it'
    )
    assert gate.check(gate.expected).passed
    some = Gate.for_module(root_and_negative("root"), {"x": np.array([-1, 2], np.float32)})
    assert "NaN" not in some.reference
    assert some.check(some.expected).passed


@pytest.mark.usefixtures("large")
def test_a_large_program_is_computed_by_two_engines() -> None:
    module = product()
    gate = Gate.for_module(module, random_inputs(module["main"]))
    assert gate.reference.startswith("onnxruntime without optimisations, confirmed by openvino (difference ")


@pytest.mark.usefixtures("large")
def test_when_two_engines_disagree_a_third_one_decides() -> None:
    module = product()
    inputs = random_inputs(module["main"])
    with TOOLCHAINS.holding("openvino", WrongOpenVino):
        gate = Gate.for_module(module, inputs)
    assert gate.reference.startswith(
        "onnxruntime without optimisations, confirmed by onnx.reference (difference "
    )
    assert '; outvoted: openvino (output "output_' in gate.reference
    assert gate.check(Gate.for_module(module, inputs).expected).passed


def test_results_that_agree_against_the_reference_are_found() -> None:
    module = product()
    gate = Gate.for_module(module, random_inputs(module["main"]))
    off = [array + np.float32(0.1) for array in gate.expected]
    further = [array + np.float32(0.2) for array in gate.expected]
    assert gate.agreeing({"a": off, "b": further, "c": [array * 1 for array in off]}) == ("a", "c")
    assert gate.agreeing({"a": off, "b": further, "d": []}) is None


def test_the_definition_does_not_vote_on_what_it_ignores() -> None:
    module = from_onnx(recurrent_model("GRU", steps=5, batch=3, lengths=(5, 2, 3)))
    gate = Gate.for_module(module, random_inputs(module["main"]))
    assert gate.is_proven
    assert "onnx.reference" not in gate.reference
    assert "confirmed by openvino" in gate.reference


def test_outputs_keep_their_names_beside_exposed_values() -> None:
    """The argument of a step is a further output, whose name must not be that of an output."""
    x = Var("x", checked_type=TensorType((2, 8), DType.FLOAT32))
    step = call("Floor", call("Mul", call("Sin", x), Constant(np.asarray(7.3, np.float32))))
    names = ("exposed_0", "y")
    main = Function((x,), Tuple((step, call("Sin", step))), Attrs({"output_names": names}))
    module = IRModule.from_expr(main)
    gate = Gate.for_module(module, random_inputs(main))
    assert gate.names == names
    assert gate.check([gate.expected[0] + 2, gate.expected[1]]).message.startswith('output "exposed_0"[0, 0]')
    assert gate.check([gate.expected[0], gate.expected[1] + 2]).message.startswith('output "y"')
