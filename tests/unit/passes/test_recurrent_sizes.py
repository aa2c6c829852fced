"""Recurrent layers of any length, or of any batch, on native."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto
from tests.onnx_models import model_of
from tests.recurrent_layers import recurrent_model

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.passes import partition_whole
from intarsia.runtime.plan import Repeat
from intarsia.target import Target

NATIVE = Target.for_toolchain("native", threads=1)

EXPORTED = """
exported (float[{batch},{steps},3] x) => (float[b,s,2] y)
<int64 one = {{1}}, int64[1] zero = {{0}}, int64[1] directions = {{1}}, int64[1] width = {{4}}>
{{
    by_time = Transpose <perm = [1, 0, 2]> (x)
    shape = Shape(by_time)
    count = Gather <axis = 0> (shape, one)
    counts = Unsqueeze(count, zero)
    size = Concat <axis = 0> (directions, counts, width)
    start = ConstantOfShape <value = float[1] {{0.5}}> (size)
    states, last = GRU <hidden_size = 4, linear_before_reset = 1> (by_time, w, r, b, , start)
    axis = Constant <value = int64[1] {{1}}> ()
    squeezed = Squeeze(states, axis)
    by_batch = Transpose <perm = [1, 0, 2]> (squeezed)
    scores = MatMul(by_batch, to_classes)
    y = Softmax <axis = -1> (scores)
}}
"""
"""A batch of texts, whose initial state has the shape that the exporter reads of the input."""


def random(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def exported(batch: int | str, steps: int | str) -> ModelProto:
    weights: dict[str, Any] = {
        "w": random(1, 12, 3),
        "r": random(1, 12, 4),
        "b": random(1, 24),
        "to_classes": random(4, 2),
    }
    return model_of(EXPORTED.format(batch=batch, steps=steps), **weights)


def require_right(
    proto: ModelProto,
    *inputs: np.ndarray[Any, Any],
    repeats: bool,
    others: Mapping[str, Sequence[np.ndarray[Any, Any]]] = MappingProxyType({}),
    toolchains: Collection[str] = ("native",),
) -> None:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    with build(partition_whole(from_onnx(proto), NATIVE)) as executable:
        assert {kernel.source.toolchain for kernel in executable.kernels} == set(toolchains)
        steps = executable.plan.blocks["main"].steps
        assert any(isinstance(step, Repeat) for step in steps) is repeats
        for number, x in enumerate(inputs):
            given = {"x": x} | {name: arrays[number] for name, arrays in others.items()}
            for found, wanted in zip(executable.run_flat(**given), session.run(None, given), strict=True):
                assert isinstance(found, np.ndarray)
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("operator", "direction"), [("LSTM", "forward"), ("GRU", "bidirectional"), ("RNN", "reverse")]
)
def test_a_layer_of_any_length_repeats_the_kernels_of_one_step(operator: str, direction: str) -> None:
    proto = recurrent_model(operator, steps="steps", batch=2, direction=direction, optional=("b",))
    require_right(proto, *(random(steps, 2, 3) for steps in (1, 2, 7, 40, 2)), repeats=True)


def test_an_exported_layer_of_any_length() -> None:
    require_right(exported(1, "steps"), *(random(1, steps, 3) for steps in (1, 5, 33, 5)), repeats=True)


def test_a_short_layer_of_any_batch_is_written_step_by_step() -> None:
    require_right(exported("texts", 6), *(random(texts, 6, 3) for texts in (1, 2, 7)), repeats=False)


SIZES = ((1, 1), (5, 1), (1, 3), (7, 2), (33, 5), (7, 2))
"""Steps and texts of calls."""
MIXED = ("native", "reference")
"""Toolchains where the interpreter makes initial states, and moves elements between steps and texts."""


@pytest.mark.parametrize("has_lengths", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_a_layer_of_any_length_and_any_batch(operator: str, direction: str, *, has_lengths: bool) -> None:
    lengths = () if has_lengths else None
    proto = recurrent_model(
        operator, steps="steps", batch="texts", direction=direction, optional=("b",), lengths=lengths
    )
    generator = np.random.default_rng(3)
    counts = [generator.integers(1, steps + 1, texts, np.int32) for steps, texts in SIZES]
    others = {"lengths": counts} if has_lengths else {}
    inputs = [random(steps, texts, 3) for steps, texts in SIZES]
    require_right(proto, *inputs, repeats=True, others=others, toolchains=MIXED)


def test_an_exported_layer_of_any_length_and_any_batch() -> None:
    inputs = [random(texts, steps, 3) for steps, texts in SIZES]
    require_right(exported("texts", "steps"), *inputs, repeats=True, toolchains=MIXED)
