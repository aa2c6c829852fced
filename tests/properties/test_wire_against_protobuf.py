"""The cutter and protobuf's own parser read the same from every spelling of a message."""

from __future__ import annotations

from typing import Any

import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.frontend.onnx.external_data import WeightSource
from intarsia.frontend.onnx.wire import LARGE, SELF, cut_out_weights

GRAPH, INITIALIZER = 7, 5
DIMS, DATA_TYPE, FLOAT_DATA, NAME, RAW_DATA, EXTERNAL_DATA, DATA_LOCATION = 1, 2, 4, 8, 9, 13, 14
UNKNOWN = 3000
SIZES = st.sampled_from([0, 3, LARGE - 1, LARGE, 2 * LARGE])
SETTINGS = settings(max_examples=examples(400), deadline=None)


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def bytes_field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def unknown_group(content: bytes) -> bytes:
    return varint(UNKNOWN << 3 | 3) + content + varint(UNKNOWN << 3 | 4)


def reference(key: str, value: str) -> bytes:
    return bytes_field(EXTERNAL_DATA, bytes_field(1, key.encode()) + bytes_field(2, value.encode()))


UNKNOWN_FIELDS = st.one_of(
    st.builds(number_field, st.just(UNKNOWN), st.integers(0, 2**63)),
    st.builds(bytes_field, st.just(UNKNOWN), st.binary(max_size=4)),
    st.just(varint(UNKNOWN << 3 | 1) + b"12345678"),
    st.just(varint(UNKNOWN << 3 | 5) + b"1234"),
    st.just(unknown_group(bytes_field(RAW_DATA, b"in a group") + unknown_group(number_field(1, 7)))),
    st.just(number_field(RAW_DATA, 5)),  # of another kind than the message says: unknown as well
)
TENSOR_FIELDS = st.one_of(
    st.builds(number_field, st.just(DIMS), st.integers(0, 9)),
    st.builds(number_field, st.just(DATA_TYPE), st.just(2)),
    st.builds(lambda name: bytes_field(NAME, name.encode()), st.text("ab", max_size=3)),
    st.builds(lambda size, fill: bytes_field(RAW_DATA, bytes([fill]) * size), SIZES, st.integers(0, 255)),
    st.builds(number_field, st.just(DATA_LOCATION), st.sampled_from([0, 1, 2, 2**32 + 1, 2**32])),
    st.builds(reference, st.sampled_from(["location", "offset", "length"]), st.sampled_from(["w.bin", "7"])),
    st.builds(bytes_field, st.just(FLOAT_DATA), st.sampled_from([b"", b"1234"])),
    UNKNOWN_FIELDS,
)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """A model whose graph may come in several parts, with fields in any order and any number."""
    parts = [number_field(1, 8)]
    for _ in range(draw(st.integers(1, 3))):
        tensors = draw(st.lists(st.lists(TENSOR_FIELDS, max_size=9).map(b"".join), max_size=3))
        graph = [bytes_field(INITIALIZER, tensor) for tensor in tensors]
        graph.append(draw(st.one_of(UNKNOWN_FIELDS, st.just(bytes_field(2, b"name")))))
        parts.append(bytes_field(GRAPH, b"".join(draw(st.permutations(graph)))))
    parts.append(draw(UNKNOWN_FIELDS))
    return b"".join(draw(st.permutations(parts)))


def is_cut(tensor: Any) -> bool:
    return any(entry.value == SELF for entry in tensor.external_data)


@SETTINGS
@given(messages())
def test_initializers_are_what_protobuf_reads(data: bytes) -> None:
    source = WeightSource(None, memoryview(data))
    expected = onnx.ModelProto.FromString(data)
    found = onnx.ModelProto.FromString(cut_out_weights(data))
    assert len(found.graph.initializer) == len(expected.graph.initializer)
    for cut, whole in zip(found.graph.initializer, expected.graph.initializer, strict=True):
        is_inline = whole.data_location == whole.DEFAULT
        assert is_cut(cut) == (is_inline and len(whole.raw_data) >= LARGE)
        if is_cut(cut):
            cut.dims[:] = [len(whole.raw_data)]
            cut.data_type = onnx.TensorProto.UINT8
            assert source.read(cut).tobytes() == whole.raw_data
            for message in (cut, whole):
                for name in ("dims", "data_type", "raw_data", "external_data", "data_location"):
                    message.ClearField(name)
    assert found == expected
