"""Whole networks: each of their calls is covered, and small ones are right as one graph of operations."""

from __future__ import annotations

import numpy as np
import pytest
from tests.te_cases import tensors_of
from tests.te_evaluator import evaluate

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import Call, DType, TensorType, post_order
from intarsia.measure.judge.compare_outputs import compare
from intarsia.measure.judge.tolerance import tolerance_for
from intarsia.native.te.operators import reason_not_covered

SMALL = ("bert_tiny", "gpt2_tiny", "mnist")
MIXED = {"lstm"}  # its LSTM operators run on another toolchain
LARGE = sorted({model.name for model in zoo()} - set(SMALL) - MIXED)


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)])
def test_every_call_has_a_kernel(name: str) -> None:
    module = from_onnx(build_model(name, 0))
    calls = [node for function in module.graph_functions.values() for node in post_order(function)]
    reasons = {reason_not_covered(node) for node in calls if isinstance(node, Call)}
    assert reasons == {None}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_small_network_is_right(name: str) -> None:
    module = from_onnx(build_model(name, 0))
    random = np.random.default_rng(0)
    inputs = []
    for param in module["main"].params:
        type_ = param.checked_type
        assert isinstance(type_, TensorType)
        if type_.dtype.is_integer:
            inputs.append(random.integers(0, 2, type_.static_shape).astype(type_.dtype.numpy))
        else:
            assert type_.dtype is DType.FLOAT32
            inputs.append(random.standard_normal(type_.static_shape).astype(np.float32))
    expected = [np.asarray(value) for value in build(module).run_flat(*inputs)]
    tensors = tensors_of(module["main"], inputs)
    found = evaluate(tensors.outputs, tensors.feeds)
    names = [f"result {position}" for position in range(len(expected))]
    tolerances = [tolerance_for(each.dtype, 256, depth=50) for each in expected]
    report = compare(found, expected, names, tolerances)
    assert report.passed, report.message
