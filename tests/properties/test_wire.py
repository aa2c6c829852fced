"""Cutting the weights out of a message loses nothing; a damaged message raises our errors and no others."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, numpy_helper
from tests.effort import examples
from tests.onnx_models import model_of

from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.onnx.external_data import WeightSource
from intarsia.frontend.onnx.wire import LARGE, SELF, cut_out_weights
from intarsia.support.errors import IntarsiaError, InvalidModelError

DTYPES = ("float32", "float64", "float16", "int64", "int32", "uint8", "bool")
EDGE = st.sampled_from([0, 1, LARGE - 1, LARGE, LARGE + 1, 5 * LARGE])
SETTINGS = settings(max_examples=examples(80), deadline=None)


@st.composite
def tensors(draw: st.DrawFn, name: str) -> TensorProto:
    """A tensor around the size from which data is cut out, as raw bytes or as repeated numbers."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    count = max(0, draw(EDGE) // dtype.itemsize + draw(st.integers(-1, 1)))
    seed = draw(st.integers(0, 2**32 - 1))
    array = np.random.default_rng(seed).integers(0, 2, count).astype(dtype)
    if dtype == np.float32 and draw(st.booleans()):
        return onnx.helper.make_tensor(name, TensorProto.FLOAT, array.shape, array.tolist())
    tensor = numpy_helper.from_array(array, name)
    tensor.doc_string = draw(st.text(max_size=5))
    return tensor


@st.composite
def models(draw: st.DrawFn) -> Any:
    """A model whose message has every kind of field that the cutter walks over."""
    model = model_of("g (float[2,3] x) => (float[2,3] y) { [n] y = LeakyRelu <alpha = 0.5> (x) }")
    for index in range(draw(st.integers(0, 4))):
        model.graph.initializer.append(draw(tensors(f"w{index}")))
    if draw(st.booleans()):
        model.graph.node.add(op_type="Constant", output=["c"], name=draw(st.text(max_size=3)))
        model.graph.node[-1].attribute.append(onnx.helper.make_attribute("value", draw(tensors("c"))))
    model.doc_string = draw(st.text(max_size=2000))
    model.model_version = draw(st.integers(-(2**63), 2**63 - 1))
    if draw(st.booleans()):
        model.metadata_props.add(key="k", value=draw(st.text(max_size=9)))
    return model


@SETTINGS
@given(models())
def test_cut_out_and_read_again_is_the_original(model: Any) -> None:
    data = model.SerializeToString()
    skeleton = onnx.load_model_from_string(cut_out_weights(data))
    source = WeightSource(None, memoryview(data))
    assert len(skeleton.graph.initializer) == len(model.graph.initializer)
    for cut, whole in zip(skeleton.graph.initializer, model.graph.initializer, strict=True):
        expected = numpy_helper.to_array(whole)
        found = source.read(cut)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        is_cut = any(entry.value == SELF for entry in cut.external_data)
        assert is_cut == (len(whole.raw_data) >= LARGE)
    for message in (skeleton, model):
        del message.graph.initializer[:]
    assert skeleton == model


@SETTINGS
@given(models())
def test_what_is_left_is_small(model: Any) -> None:
    """Apart from numbers that were not written as raw bytes, and from Constant nodes."""
    data = model.SerializeToString()
    moved = sum(len(item.raw_data) for item in model.graph.initializer if len(item.raw_data) >= LARGE)
    assert len(cut_out_weights(data)) <= len(data) - moved + 64 * len(model.graph.initializer)


def import_or_refuse(data: bytes) -> None:
    """Anything but our own errors fails the test."""
    with suppress(IntarsiaError):
        from_onnx(data)


@SETTINGS
@given(models(), st.data())
def test_truncation_is_refused_or_harmless(model: Any, data: st.DataObject) -> None:
    whole = model.SerializeToString()
    import_or_refuse(whole[: data.draw(st.integers(0, len(whole) - 1))])


@SETTINGS
@given(st.binary(max_size=300))
def test_garbage_is_refused(garbage: bytes) -> None:
    with pytest.raises(InvalidModelError):
        from_onnx(garbage)


@SETTINGS
@given(models(), st.data())
def test_damaged_bytes_are_refused_or_harmless(model: Any, data: st.DataObject) -> None:
    damaged = bytearray(model.SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    import_or_refuse(bytes(damaged))
