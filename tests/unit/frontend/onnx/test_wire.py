import numpy as np
import onnx
import pytest
from tests.onnx_models import model_of

from intarsia.frontend.onnx.wire import LARGE, SELF, cut_out_weights, not_a_model
from intarsia.support.errors import InvalidModelError


def test_large_weights_become_references_to_their_place() -> None:
    weight = np.arange(LARGE, dtype=np.uint8)
    data = model_of("g (uint8[1024] x) => (uint8[1024] y) { y = Max(x, w) }", w=weight).SerializeToString()
    (tensor,) = onnx.load_model_from_string(cut_out_weights(data)).graph.initializer
    entries = {entry.key: entry.value for entry in tensor.external_data}
    offset = int(entries["offset"])
    assert data[offset : offset + LARGE] == weight.tobytes()
    assert entries == {"location": SELF, "offset": str(offset), "length": str(LARGE)}
    assert (tensor.name, list(tensor.dims), tensor.raw_data) == ("w", [LARGE], b"")


def test_small_weights_stay() -> None:
    model = model_of("g (uint8[3] x) => (uint8[3] y) { y = Max(x, w) }", w=np.zeros(LARGE - 1, np.uint8))
    assert cut_out_weights(model.SerializeToString()) == model.SerializeToString()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x08", "the model is truncated: it ends at byte 1, inside a number"),
        (b"\x08\xff", "the model is truncated: it ends at byte 2, inside a number"),
        (b"\x09abc", "the model is truncated: it ends at byte 4, but a field reaches to byte 9"),
        (b"\x0dabc", "the model is truncated: it ends at byte 4, but a field reaches to byte 5"),
        (b"\x3a\x04ab", "the model is truncated: it ends at byte 4, but a field reaches to byte 6"),
        (b"\x0e", "not an ONNX model: byte 0 starts no field of a protobuf message"),
        (b"\x0c", "not an ONNX model: byte 0 starts no field of a protobuf message"),
        (b"\x0b", "the model is truncated: it ends at byte 1, inside a number"),
        (b"\x0b\x14", "not an ONNX model: byte 1 starts no field of a protobuf message"),
        (b"\x00\x00", "not an ONNX model: byte 0 starts no field of a protobuf message"),
        (b"\x08" + b"\xff" * 11, "not an ONNX model: no number ends at byte 11"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
            "the file is a Git LFS pointer, not the model itself",
        ),
    ],
)
def test_damaged_messages(data: bytes, message: str) -> None:
    with pytest.raises(InvalidModelError) as caught:
        cut_out_weights(data)
    assert caught.value.problem == message


def test_nothing_in_nothing_out() -> None:
    assert cut_out_weights(b"") == b""


def test_not_a_model_says_what_to_pass() -> None:
    assert str(not_a_model("no")) == "not an ONNX model: no\nhelp: pass an .onnx file, or its bytes"
