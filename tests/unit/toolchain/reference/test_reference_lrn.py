"""LRN in the reference toolchain, against ONNX's formula written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.onnx_models import model_of

from intarsia.frontend.onnx import from_onnx
from intarsia.runtime.kernel import Array
from intarsia.target import Target
from intarsia.toolchain import toolchain


def run(name: str, x: Array, size: int) -> Array:
    dims = ",".join(map(str, x.shape))
    attributes = f"alpha = 0.5, beta = 0.6, bias = 2.0, size = {size}"
    text = f"g (float[{dims}] x) => (float[{dims}] y) {{ y = LRN <{attributes}> (x) }}"
    module = from_onnx(model_of(text))
    (y,) = toolchain(name).compile(module["main"], Target(f"cpu -toolchain={name}"), module).run([x], [None])
    assert isinstance(y, np.ndarray)
    return y


def by_definition(x: Array, size: int) -> Array:
    y = np.empty_like(x)
    for channel in range(x.shape[1]):
        begin, end = channel - (size - 1) // 2, channel + size // 2 + 1
        squares = (x[:, max(0, begin) : end].astype(np.float64) ** 2).sum(axis=1)
        y[:, channel] = x[:, channel] / (2.0 + 0.5 / size * squares) ** 0.6
    return y


@settings(max_examples=examples(25))
@given(st.integers(1, 3), st.integers(1, 7), st.integers(1, 5))
def test_every_channel_is_normalised(batch: int, channels: int, size: int) -> None:
    x = np.random.default_rng(0).normal(size=(batch, channels, 2, 3)).astype(np.float32)
    np.testing.assert_allclose(run("reference", x, size), by_definition(x, size), rtol=1e-5)


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_engines_agree(name: str) -> None:
    x = np.random.default_rng(1).normal(size=(1, 6, 2, 3)).astype(np.float32)
    np.testing.assert_allclose(run(name, x, 5), by_definition(x, 5), rtol=1e-5)
