from typing import Any

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia import op
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, Constant, DType, Expr, Op, SymbolicDim, TensorType, Var, post_order
from intarsia.op.known_value import LARGEST_KNOWN, known_value

ATTENTION_SHAPES = """
    g (float[{batch},16,32] x) => (float[b,s,h] y) {{
        s = Shape(x)   b = Gather <axis = 0> (s, zero)   bu = Unsqueeze(b, axes)
        s2 = Shape(x)  t = Gather <axis = 0> (s2, one)   tu = Unsqueeze(t, axes)
        split = Concat <axis = 0> (bu, tu, heads, width)
        q = Reshape(x, split)
        qt = Transpose <perm = [0, 2, 1, 3]> (q)
        back = Transpose <perm = [0, 2, 1, 3]> (qt)
        all = Mul(heads, width)
        joined = Concat <axis = 0> (bu, tu, all)
        y = Reshape(back, joined)
    }}"""
"""Splitting heads off and joining them again, as torch.onnx writes it."""

CUBE = Var("x", checked_type=TensorType((2, 3, 4), DType.FLOAT32))


def attention(batch: str) -> Any:
    ints = {"zero": 0, "one": 1, "axes": [0], "heads": [4], "width": [8]}
    arrays: dict[str, Any] = {name: np.array(value, np.int64) for name, value in ints.items()}
    return model_of(ATTENTION_SHAPES.format(batch=batch), **arrays)


def shapes_of(main: Expr, name: str) -> list[str]:
    calls = (node for node in post_order(main) if isinstance(node, Call))
    return [str(call.checked_type) for call in calls if isinstance(call.op, Op) and call.op.name == name]


def test_static_shapes_pass_through_shape_arithmetic() -> None:
    main = from_onnx(attention("2"))["main"]
    assert shapes_of(main, "Reshape") == ["Tensor[(2, 16, 4, 8), float32]", "Tensor[(2, 16, 32), float32]"]
    known = {
        str(node.op): known_value(node).tolist()  # type: ignore[union-attr]  # all but the last two are known
        for node in post_order(main)
        if isinstance(node, Call) and str(node.op) in ("Shape", "Concat", "Mul")
    }
    assert known == {"Shape": [2, 16, 32], "Concat": [2, 16, 32], "Mul": [32]}


def test_a_symbolic_batch_passes_through_shape_arithmetic() -> None:
    main = from_onnx(attention("N"))["main"]
    assert shapes_of(main, "Reshape") == ["Tensor[(N, 16, 4, 8), float32]", "Tensor[(N, 16, 32), float32]"]
    assert shapes_of(main, "Transpose") == [
        "Tensor[(N, 4, 16, 8), float32]",
        "Tensor[(N, 16, 4, 8), float32]",
    ]


def test_fixing_the_symbolic_batch_makes_everything_static() -> None:
    main = from_onnx(attention("N"), shapes={"x": (3, 16, 32)})["main"]
    assert shapes_of(main, "Reshape") == ["Tensor[(3, 16, 4, 8), float32]", "Tensor[(3, 16, 32), float32]"]


def constant(values: Any, dtype: str = "int64") -> Constant:
    return Constant(np.array(values, dtype))


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (op.call("Add", constant([1, 2]), constant(3)), [4, 5]),
        (op.call("Div", constant([7, -7]), constant(2)), [3, -3]),
        (op.call("Size", CUBE), 24),
        (op.call("Shape", CUBE, start=1), [3, 4]),
        (
            op.call("Shape", CUBE, start=-2, end=-1),
            [3],
        ),
        (op.call("Slice", constant([1, 2, 3, 4]), constant([1]), constant([3])), [2, 3]),
        (op.call("Cast", constant([1.7], "float32"), to=7), [1]),
        (op.call("Clip", constant([-1.0, 2.0], "float32"), Constant(np.array(0.0, np.float32))), [0, 2]),
        (op.call("Pow", constant([2, 3]), constant([2])), [4, 9]),
    ],
)
def test_values(call: Call, value: list[int]) -> None:
    assert known_value(call).tolist() == value  # type: ignore[union-attr]  # None has no tolist, and fails


def test_what_is_not_known() -> None:
    x = Var("x", checked_type=TensorType((SymbolicDim("N"), 3), DType.FLOAT32))
    assert known_value(x) is None
    assert known_value(op.call("Shape", x)) is None
    assert known_value(op.call("Relu", constant([1.0], "float32"))) is None, "Relu is no shape arithmetic"
    assert known_value(op.call("Add", constant([1.0], "float64"), constant([1.0], "float64"))) is None


def test_large_values_are_data() -> None:
    many = constant(range(LARGEST_KNOWN + 1))
    assert known_value(many) is None
    assert known_value(op.call("Neg", many)) is None
    assert known_value(op.call("Expand", constant([1]), constant([LARGEST_KNOWN + 1]))) is None


def test_division_by_zero_is_quiet(recwarn: pytest.WarningsRecorder) -> None:
    op.call("Div", constant([1.0], "float32"), constant([0.0], "float32"))
    assert [str(item.message) for item in recwarn] == []


def test_scales_of_all_axes_are_known_and_scales_of_channels_are_data() -> None:
    for elements, is_known in ((16, True), (17, False)):
        halves = op.call("Mul", constant([1.0] * elements, "float32"), constant([0.5], "float32"))
        assert (known_value(halves) is not None) is is_known
