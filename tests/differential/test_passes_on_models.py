"""Every pass on every model of the zoo: the model computes the same after it, by the numeric gate."""

from __future__ import annotations

from functools import cache

import pytest
from tests.effort import is_full_effort
from tests.every_pass import every_pass
from tests.model_gates import model_gate

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import IRModule, structural_digest
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import Gate, run_arrays
from intarsia.op import verify
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.transform import PassContext

LIKE_SMALLER = {"bert_base": "bert_tiny", "gpt2": "gpt2_tiny", "vgg19": "alexnet", "zfnet512": "alexnet"}
"""Large models, with a smaller one that has all their operators."""
WITH_ALL_EFFORT = pytest.mark.skipif(not is_full_effort(), reason="a smaller model has its operators")
PASSES = every_pass()
ENGINE = Target("cpu -toolchain=onnxruntime")
HALF = {"ToMixedPrecision": 0.05}
"""Passes that compute in half precision: how far results may be off, relative to the largest value."""


@cache
def model(name: str) -> tuple[IRModule, Gate]:
    mod = from_onnx(build_model(name, 0))
    return mod, model_gate(name, mod, random_inputs(mod["main"], 0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(item.name, marks=WITH_ALL_EFFORT if item.name in LIKE_SMALLER else ()) for item in zoo()],
)
def test_every_pass_keeps_the_results(name: str) -> None:
    mod, gate = model(name)
    inputs = random_inputs(mod["main"], 0)
    wrong = {}
    seen = set()
    for item in PASSES:
        after = item(mod, PassContext(opt_level=9))
        verify(after)
        if after is mod or "bfloat16" in str(item):
            continue  # onnxruntime has no bfloat16; tests of the pass run it on openvino
        if item.info.name == "AnnotateQuantization":
            continue  # no engine has its marks; tests of the pass run them on the reference
        digest = structural_digest(after)
        if digest in seen:
            continue  # another pass, or the same one with other options, made the same program
        seen.add(digest)
        is_partitioned = any("Compiler" in function.attrs for function in after.graph_functions.values())
        executable = build(after if is_partitioned else partition_whole(after, ENGINE))
        report = gate.check(run_arrays(executable, inputs))
        executable.close()
        if not report.passed and not report.max_rel_error <= HALF.get(item.info.name, 0.0):
            wrong[str(item)] = report.message
    model.cache_clear()
    assert wrong == {}
