import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each_case import each_case
from tests.ir_programs import F32, ones

from intarsia.ir import DType, Op, Span, SymbolicDim, TensorType
from intarsia.ir.literal import (
    bytes_of,
    device_of,
    device_text,
    name_of,
    name_text,
    op_text,
    span_of,
    span_text,
    tensor_type_of,
    value_text,
)
from intarsia.target import DeviceType, Target, VirtualDevice


def written(value: object) -> str:
    return value_text(value, lambda constant: f"constant of {constant.data.size}")  # type: ignore[arg-type]  # wrong kinds are tested too


@pytest.mark.parametrize("name", ["x", "_", "conv1_weight", "X9"])
def test_plain_names_stand_as_they_are(name: str) -> None:
    assert name_text(name) == name


@each_case("name", ["", "0", "1x", "input:0", "a.b", "a b", "größe", 'say "hi"', "a\n", "if", "let", "nan"])
def test_other_names_are_quoted(name: str) -> None:
    text = name_text(name)
    assert text.startswith('"')
    assert text.isascii()
    assert "\n" not in text


@given(st.text())
def test_names_round_trip(name: str) -> None:
    assert name_of(name_text(name)) == name


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (Op("Conv"), "Conv"),
        (Op("Scaler", "ai.onnx.ml"), "ai.onnx.ml::Scaler"),
        (Op("a b", "c d"), '"c d"::"a b"'),
        (Op("if"), '"if"'),
        (Op("0"), '"0"'),
    ],
)
def test_operators(op: Op, text: str) -> None:
    assert op_text(op) == text


@given(st.text(), st.text(), st.text())
def test_spans_round_trip(source: str, node: str, operator: str) -> None:
    span = Span(source, node, operator)
    assert span_of(span_text(span)) == span


@pytest.mark.parametrize("text", ['@span("a")', '@span("a", "b", "c", "d")', "@span(1, 2)"])
def test_other_spans_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected two or three strings"):
        span_of(text)


@pytest.mark.parametrize(
    ("device", "text"),
    [
        (VirtualDevice(), "@device(?)"),
        (VirtualDevice(DeviceType.CPU, 1), "@device(cpu:1)"),
        (
            VirtualDevice.for_target(Target("cpu -threads=2")),
            '@device(cpu:0, target="cpu -threads=2")',
        ),
    ],
)
def test_devices(device: VirtualDevice, text: str) -> None:
    assert device_text(device) == text
    assert device_of(text) == device


@each_case(
    ("value", "text"),
    [
        *((0, "0"), (-7, "-7"), (2**70, "1180591620717411303424"), (True, "true"), (False, "false")),
        *((1.0, "1.0"), (1e-05, "1e-05"), (1e22, "1e+22"), (-0.0, "-0.0")),
        *((math.inf, "inf"), (-math.inf, "-inf"), (math.nan, "nan")),
        *(("", '""'), ('a"\\\n', '"a\\"\\\\\\n"'), ("é", '"\\u00e9"')),
        *((b"", 'b""'), (b'a"\\\x00\xff ', 'b"a\\x22\\x5c\\x00\\xff "')),
        *(((), "[]"), ((1, (2.0, ())), "[1, [2.0, []]]")),
        (ones(), "constant of 6"),
        (F32, "Tensor[(2, 3), float32]"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert written(value) == text


@pytest.mark.parametrize("value", [None, {}, object(), (1, None)])
def test_values_of_no_kind_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="an attribute cannot hold a"):
        written(value)


@given(st.binary())
def test_bytes_round_trip(value: bytes) -> None:
    text = written(value)
    assert bytes_of(text) == value
    assert text.isascii()


@pytest.mark.parametrize("text", [r'b"\x0"', 'b"é"'])
def test_other_bytes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        bytes_of(text)


DIMS = st.integers(0, 2**40) | st.builds(SymbolicDim, st.text(min_size=1))


@given(st.none() | st.lists(DIMS, max_size=5), st.sampled_from(DType))
def test_tensor_types_round_trip(shape: list[int | SymbolicDim] | None, dtype: DType) -> None:
    own_type = TensorType(None if shape is None else tuple(shape), dtype)
    assert tensor_type_of(str(own_type)) == own_type


def test_spaces_in_tensor_types_do_not_matter() -> None:
    assert tensor_type_of("Tensor [ ( 2 ,3, ) ,\n float32 ]") == F32


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Tensor[(2, 3)]", "expected Tensor[(1, 3, n), float32] or Tensor[?, float32]"),
        ("Tensor[(), f32]", "unknown element type f32"),
        ("Tensor[(1, 2 3), int8]", "expected a number, a name or ? as dimension 1"),
        ("Tensor[(-1), int8]", "expected a number, a name or ? as dimension 0"),
    ],
)
def test_other_tensor_types_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r".+") as caught:
        tensor_type_of(text)
    assert str(caught.value) == complaint
