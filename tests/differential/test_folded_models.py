"""Models of the zoo through the passes that remove operators: the same results on onnxruntime.

Inputs are random; the outputs compared are those before a Softmax in the end, where rounding hides nothing.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.pass_checks import operator_counts

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.ir import Call, IRModule, with_fields
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import run_arrays
from intarsia.op import verify
from intarsia.passes import (
    CanonicalizeOps,
    FoldConstant,
    FoldScaleAxis,
    SimplifyExpr,
    SimplifyInference,
    partition_whole,
)
from intarsia.transform import Sequential

TARGET = ia.Target.for_toolchain("onnxruntime")
PASSES = Sequential(
    [SimplifyInference(), FoldConstant(), CanonicalizeOps(), SimplifyExpr(), FoldScaleAxis, SimplifyExpr()]
)
LIGHT = (
    "bert_tiny",
    "dcgan",
    "gpt2_tiny",
    "mnist",
    "mobilenet_v2",
    "shufflenet",
    "squeezenet",
)
HEAVY = ("densenet121", "inception_v1", "inception_v2", "resnet50", "resnext50")
MODELS = (*LIGHT, *(pytest.param(name, marks=pytest.mark.slow) for name in HEAVY))
FULLY_FOLDED = frozenset({"dcgan", "inception_v2", "mobilenet_v2", "resnet50", "resnext50", "shufflenet"})
"""Models whose batch normalizations all come after layers of which they are the only use."""


def without_softmax(mod: IRModule) -> IRModule:
    body = mod["main"].body
    if not isinstance(body, Call) or str(body.op) != "Softmax":
        return mod
    return mod.with_function("main", with_fields(mod["main"], body=body.args[0], checked_type=None))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_the_same(name: str) -> None:
    before = without_softmax(ia.from_onnx(build_model(name)))
    after = PASSES(before)
    verify(after)
    assert PASSES(after) is after
    counts = operator_counts(after)
    assert counts["BatchNormalization"] == 0
    assert sum(counts.values()) <= sum(operator_counts(before).values())
    if name in FULLY_FOLDED:
        assert counts["Mul"] == counts["Div"] == 0

    inputs = random_inputs(before["main"])
    results = (run_arrays(ia.build(partition_whole(mod, TARGET)), inputs) for mod in (before, after))
    for expected, found in zip(*results, strict=True):
        scale = float(np.abs(expected).max())
        assert scale > 0
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * scale)
