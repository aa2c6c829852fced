from typing import Any

import pytest

from intarsia import op
from intarsia.ir import DType, SymbolicDim, TensorType, Var
from intarsia.op.intarsia_ops import layout_permutation
from intarsia.support.errors import InvalidModelError

NCHW = TensorType((SymbolicDim("N"), 3, 8, 9), DType.FLOAT32)
X = Var("x", checked_type=NCHW)


@pytest.mark.parametrize("name", ["on_device", "device_copy"])
def test_placement_keeps_the_type(name: str) -> None:
    assert op.call(name, X, domain="intarsia").checked_type == NCHW


def test_layout_transform_permutes_the_shape() -> None:
    moved = op.call("layout_transform", X, domain="intarsia", src_layout="NCHW", dst_layout="NHWC")
    assert moved.checked_type == TensorType((SymbolicDim("N"), 8, 9, 3), NCHW.dtype)


def test_layout_transform_of_an_unknown_type() -> None:
    unknown = Var("x")
    moved = op.call("layout_transform", unknown, domain="intarsia", src_layout="AB", dst_layout="BA")
    assert moved.checked_type is None


def test_permutation() -> None:
    assert layout_permutation("NCHW", "NHWC") == (0, 2, 3, 1)


@pytest.mark.parametrize(("source", "destination"), [("NCHW", "NHW"), ("NCHW", "NCHV"), ("NN", "NN")])
def test_layouts_that_do_not_fit(source: str, destination: str) -> None:
    with pytest.raises(
        InvalidModelError, match=f"layout '{source}' cannot be transformed to '{destination}'"
    ):
        layout_permutation(source, destination)


@pytest.mark.parametrize(
    ("name", "args", "attrs", "message"),
    [
        ("device_copy", (), {}, "operator 'intarsia::device_copy' has 0 arguments, expected 1"),
        ("device_copy", (X, X), {}, "operator 'intarsia::device_copy' has 2 arguments, expected 1"),
        (
            "device_copy",
            (X,),
            {"to": 1},
            "operator 'intarsia::device_copy' has the attributes (to), expected ()",
        ),
        (
            "layout_transform",
            (X,),
            {"src_layout": "NCHW"},
            "operator 'intarsia::layout_transform' has the attributes (src_layout), "
            "expected (dst_layout, src_layout)",
        ),
        (
            "layout_transform",
            (X,),
            {"src_layout": "HW", "dst_layout": "WH"},
            "layout 'HW' has 2 axes, the value is Tensor[(N, 3, 8, 9), float32]",
        ),
        (
            "devicecopy",
            (X,),
            {},
            "unknown operator 'devicecopy': version 1 of the domain 'intarsia' has no such operator",
        ),
    ],
)
def test_wrong_calls(name: str, args: tuple[Var, ...], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidModelError) as caught:
        op.call(name, *args, domain="intarsia", **attrs)
    assert caught.value.problem == message
