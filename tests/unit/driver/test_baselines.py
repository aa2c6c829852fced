"""The first candidates of a run: each toolchain alone."""

from __future__ import annotations

import pytest
from tests.onnx_models import model_of

from intarsia import from_onnx
from intarsia.driver.baselines import baselines
from intarsia.measure.measure_input import Workload
from intarsia.target import Target

NATIVE = Target("cpu -toolchain=native")


def names(text: str, target: Target = NATIVE) -> list[str]:
    return [entrant.name for entrant in baselines(Workload(from_onnx(model_of(text))), (target,))]


def test_native_runs_any_batch_with_code_for_a_few_sizes_and_with_code_for_any() -> None:
    text = "g (float[n, 3] x) => (float[n, 3] y) { y = Relu (x) }"
    assert names(text) == ["native", "native batches=1+4+16"]
    images = (
        "g (float[n, 1, 3, 3] x) => (float[n, 1, 3, 3] y) <float[1, 1, 1, 1] w = {2}> { y = Conv (x, w) }"
    )
    assert names(images) == ["native", "native batches=any"]
    assert names(text, NATIVE.with_options(batches="1+2")) == ["native batches=1+2"]
    assert names(text, Target("cpu -toolchain=reference")) == ["reference"]


@pytest.mark.parametrize("shape", ["2, 3", "n, m", "2, n"])
def test_programs_without_a_symbolic_batch_have_one(shape: str) -> None:
    assert names(f"g (float[{shape}] x) => (float[{shape}] y) {{ y = Relu (x) }}") == ["native"]
