"""Programs with operators that only one engine has."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contributed_nodes import node_model

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import Gate, run_arrays
from intarsia.measure.work import work_of
from intarsia.passes import partition_whole
from intarsia.target import Target

pytest.importorskip("onnxruntime")

STEPS, BATCH, FEATURES, WIDTH = 6, 2, 8, 5
GATES = 4 * WIDTH


def quantised_layer() -> IRModule:
    """An LSTM that rounds inputs and states to eight bits in every step."""
    generator = np.random.default_rng(0)
    weights = {
        "w": generator.integers(-99, 99, (1, FEATURES, GATES), np.int8),
        "r": generator.integers(-99, 99, (1, WIDTH, GATES), np.int8),
        "b": generator.standard_normal((1, 2 * GATES)).astype(np.float32),
    }
    scales = {
        "w_scale": np.array([0.01], np.float32),
        "w_zero": np.zeros(1, np.int8),
        "r_scale": np.array([0.02], np.float32),
        "r_zero": np.zeros(1, np.int8),
    }
    absent = dict.fromkeys(("lengths", "initial_h", "initial_c", "p"))
    x = {"x": generator.standard_normal((STEPS, BATCH, FEATURES)).astype(np.float32)}
    constants = (*weights, *scales)
    model = node_model(
        "DynamicQuantizeLSTM",
        {**x, **weights, **absent, **scales},
        3,
        constants=constants,
        hidden_size=WIDTH,
    )
    return from_onnx(model)


def test_the_engine_that_has_the_operator_is_the_only_judge() -> None:
    module = quantised_layer()
    inputs = random_inputs(module["main"])
    gate = Gate.for_module(module, inputs)
    assert gate.is_proven
    assert gate.reference.startswith(
        "onnxruntime without optimisations alone, since no other judge has com.microsoft::DynamicQuantizeLSTM"
    )
    with build(partition_whole(module, Target.for_toolchain("onnxruntime"))) as executable:
        outputs = run_arrays(executable, inputs)
    assert gate.check(outputs).passed
    assert not gate.check([outputs[0] * 1.5, *outputs[1:]]).passed


def test_what_is_rounded_within_an_opaque_operator_may_flip() -> None:
    """The layer of slightly other inputs, as another engine would compute them, is right as well."""
    module = quantised_layer()
    assert work_of(module).quantized
    inputs = random_inputs(module["main"])
    gate = Gate.for_module(module, inputs)
    other = {name: array * np.float32(1 + 2**-22) for name, array in inputs.items()}
    with build(partition_whole(module, Target.for_toolchain("onnxruntime"))) as executable:
        assert gate.check(run_arrays(executable, other)).passed
