import numpy as np
import pytest

from intarsia.build import build
from intarsia.ir import Function, IRModule, Span, TensorType, Var, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.op import call, device_copy, infer_types, on_device, verify
from intarsia.op.device_call import DeviceCallPlacement, is_device_copy, placement_of
from intarsia.support.errors import InvalidModelError
from intarsia.target import DeviceType, VirtualDevice

DEVICE = VirtualDevice(DeviceType.MOCK, 1)
X = Var("x", checked_type=TensorType.of(np.zeros((2, 3), np.float32)), span=Span("model.onnx", "x"))


@pytest.mark.parametrize("body", [False, True])
@pytest.mark.parametrize("result", [False, True])
def test_on_device_says_what_it_was_given(body: bool, result: bool) -> None:
    placed = on_device(X, DEVICE, constrain_body=body, constrain_result=result)
    assert placement_of(placed) == DeviceCallPlacement(DEVICE, body, result)
    assert (placed.virtual_device, placed.checked_type, placed.span) == (DEVICE, X.checked_type, X.span)


def test_only_what_is_not_the_default_is_written() -> None:
    assert dict(on_device(X, DEVICE).attrs) == {}
    fixed = on_device(X, DEVICE, constrain_body=False, constrain_result=True)
    assert dict(fixed.attrs) == {"constrain_body": 0, "constrain_result": 1}


def test_device_copy() -> None:
    copy = device_copy(X, DEVICE, span=Span("a", "b"))
    assert (copy.virtual_device, copy.checked_type, copy.span) == (DEVICE, X.checked_type, Span("a", "b"))
    assert is_device_copy(copy)
    assert placement_of(copy) is None


def test_other_calls_are_neither() -> None:
    for other in (
        X,
        call("Relu", X),
        call("layout_transform", X, domain="intarsia", src_layout="AB", dst_layout="BA"),
    ):
        assert placement_of(other) is None
        assert not is_device_copy(other)


def test_they_print_and_parse() -> None:
    fixed = on_device(call("Relu", X), DEVICE, constrain_result=True)
    mod = IRModule.from_expr(Function((X,), device_copy(fixed, VirtualDevice(DeviceType.CPU, 0))))
    verify(mod)
    assert "intarsia::on_device(%0, constrain_result=1): Tensor[(2, 3), float32] @device(mock:1)" in str(mod)
    assert structural_equal(parse_module(str(mod)), mod)


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ("constrain_body=2", "operator 'intarsia::on_device' has constrain_body=2, expected 0 or 1"),
        (
            "constrain_result=true",
            "operator 'intarsia::on_device' has constrain_result=True, expected 0 or 1",
        ),
        ("body=1", "operator 'intarsia::on_device' has no attribute 'body'"),
    ],
)
def test_wrong_attributes(attrs: str, message: str) -> None:
    text = f'#[version = "0.1"]\ndef @main(%x: Tensor[(2,), float32]) {{ intarsia::on_device(%x, {attrs}) }}'
    with pytest.raises(InvalidModelError) as caught:
        infer_types(parse_module(text))
    assert caught.value.problem == message


@pytest.mark.parametrize("name", ["on_device", "device_copy"])
def test_both_are_the_identity(name: str) -> None:
    body = call("Neg", call(name, call("Relu", X), domain="intarsia"))
    data = np.array([[-1, 2, 3], [4, -5, 6]], np.float32)
    (found,) = build(IRModule.from_expr(Function((X,), body)), "cpu -toolchain=reference").run_flat(data)
    np.testing.assert_array_equal(np.asarray(found), -np.maximum(data, 0))
