"""Every model of the zoo: print, parse, export, and the same result on every engine."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.model_gates import model_gate
from tests.onnx_models import onnxruntime_outputs

import intarsia as ia
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import Call, post_order, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import Gate, run_arrays
from intarsia.op import verify
from intarsia.passes import partition_for, partition_whole

LIGHT = frozenset({"mnist", "bert_tiny", "gpt2_tiny", "squeezenet", "dcgan"})
"""Models that a quick run checks."""
ENGINES = ("onnxruntime", "openvino")

MODELS = [
    pytest.param(model.name, marks=[] if model.name in LIGHT else [pytest.mark.slow]) for model in zoo()
]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_survives_the_round_trips_and_runs_right_everywhere(name: str) -> None:
    model = build_model(name)
    module = ia.from_onnx(model)
    verify(module)

    text = print_module(module)
    parsed = parse_module(text.text, text.constants)
    assert structural_equal(parsed, module)

    exported = ia.to_onnx(parsed["main"], parsed)
    onnx.checker.check_model(exported, full_check=exported.ByteSize() < 100_000_000)
    again = ia.from_onnx(exported)
    assert [item.name for item in again["main"].params] == [item.name for item in module["main"].params]
    assert again["main"].result_type == module["main"].result_type
    assert structural_equal(again["main"].body, module["main"].body)

    inputs = random_inputs(module["main"])
    gate = model_gate(name, module, inputs)
    original = gate.check(onnxruntime_outputs(model, inputs))
    assert original.passed, f"the import changed the meaning: {original.message}"
    assert all(np.isfinite(array).all() for array in gate.expected)
    for engine in ENGINES:
        executable = ia.build(partition_whole(again, ia.Target.for_toolchain(engine)))
        report = gate.check(run_arrays(executable, inputs))
        assert report.passed, f"{engine}: {report.message}"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_layers_of_more_steps_than_native_takes_run_on_an_engine(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intarsia.passes.decompose_recurrent.MOST_STEPS", 10)
    module = partition_for(ia.from_onnx(build_model("lstm")), "native", engine)
    where: dict[str, set[str]] = {"native": set(), engine: set()}
    for function in module.graph_functions.values():
        if toolchain := function.attrs.get("Compiler"):
            calls = (node for node in post_order(function) if isinstance(node, Call))
            where[str(toolchain)] |= {str(call.op) for call in calls}
    assert where == {
        "native": {"Gather", "Transpose", "Squeeze", "MatMul", "Add"},
        engine: {"LSTM"},
    }
    inputs = random_inputs(module["main"])
    with ia.build(module) as executable:
        report = Gate.for_module(module, inputs).check(run_arrays(executable, inputs))
    assert report.passed, report.message


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("opset", [11, 13, 17, 21, 26])
def test_export_at_older_opsets_computes_the_same(opset: int) -> None:
    module = ia.from_onnx(build_model("mnist"))
    exported = ia.to_onnx(module["main"], module, opset=opset, ir_version=10)
    assert {item.domain: item.version for item in exported.opset_import}[""] == opset
    onnx.checker.check_model(exported, full_check=True)
    inputs = random_inputs(module["main"])
    (expected,) = run_arrays(ia.build(module), inputs)
    (found,) = run_arrays(ia.build(ia.from_onnx(exported)), inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
