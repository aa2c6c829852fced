"""Old operators whose meaning onnx's converter would change, against onnxruntime on the original."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.onnx_models import model_of, onnxruntime_outputs

from intarsia.frontend.onnx import from_onnx, to_onnx
from intarsia.support.errors import InvalidModelError, UnsupportedModelError

IMAGE = np.random.default_rng(0).standard_normal((1, 2, 4, 5)).astype(np.float32)
CUBE = np.random.default_rng(1).standard_normal((3, 3, 3)).astype(np.float32)


def imported(model: Any, feeds: dict[str, Any]) -> Any:
    (found,) = onnxruntime_outputs(to_onnx(from_onnx(model)["main"]), feeds)
    return found


def assert_kept(model: Any, feeds: dict[str, Any]) -> None:
    (expected,) = onnxruntime_outputs(model, feeds)
    np.testing.assert_allclose(imported(model, feeds), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(
    ("opset", "name", "scales"),
    [(9, "Upsample", (2, 1.6)), (10, "Resize", (2, 1.6)), (10, "Resize", (0.5, 0.6))],
)
def test_resizing_by_an_input(opset: int, name: str, scales: tuple[float, float], mode: str) -> None:
    model = model_of(
        f'g (float[1,2,4,5] x) => (float[1,2,h,w] y) {{ y = {name} <mode = "{mode}"> (x, s) }}',
        opset=opset,
        ir_version=5,
        s=np.array((1, 1, *scales), np.float32),
    )
    assert_kept(model, {"x": IMAGE})


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resizing_by_an_attribute(mode: str) -> None:
    model = model_of(
        "g (float[1,2,4,5] x) => (float[1,2,h,w] y)"
        f' {{ y = Upsample <mode = "{mode}", scales = [1.0, 1.0, 2.0, 1.6]> (x) }}',
        opset=7,
        ir_version=5,
    )
    assert_kept(model, {"x": IMAGE})


@pytest.mark.parametrize("shape", ["2,4,3", "N,4,3,3", "N,C,H"])
@pytest.mark.parametrize("opset", [18, 20])
def test_group_normalization_with_a_scale_per_group(opset: int, shape: str) -> None:
    model = model_of(
        f"g (float[{shape}] x, float[2] s) => (float[{shape}] y)"
        " { y = GroupNormalization <num_groups = 2, epsilon = 0.01> (x, s, b) }",
        opset=opset,
        b=np.array([3, -4], np.float32),
    )
    x = np.random.default_rng(0).standard_normal((2, 4, 3, 3)[: shape.count(",") + 1]).astype(np.float32)
    assert_kept(model, {"x": x, "s": np.array([1, 2], np.float32)})


def test_group_normalization_of_channels_that_make_no_groups_is_refused() -> None:
    model = model_of(
        "g (float[2,5,3] x, float[2] s) => (float[2,5,3] y)"
        " { y = GroupNormalization <num_groups = 2> (x, s, s) }",
        opset=18,
    )
    with pytest.raises(InvalidModelError) as caught:
        from_onnx(model)
    assert caught.value.problem == (
        "operator 'GroupNormalization' has 5 channels, which do not make 2 equal groups"
    )


def test_a_resize_that_rounds_both_ways_is_refused() -> None:
    model = model_of(
        'g (float[1,2,4,5] x) => (float[1,2,h,w] y) { y = Resize <mode = "nearest"> (x, s) }',
        opset=10,
        ir_version=5,
        s=np.array((1, 1, 2, 0.6), np.float32),
    )
    with pytest.raises(UnsupportedModelError, match="operator 'Resize' of opset 10 at node 'y'"):
        from_onnx(model)


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("name", ["Hardmax", "Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", ["", "<axis = 0>", "<axis = 1>", "<axis = 2>", "<axis = -2>"])
def test_all_dimensions_from_an_axis_on(name: str, axis: str) -> None:
    model = model_of(f"g (float[3,3,3] x) => (float[3,3,3] y) {{ y = {name} {axis} (x) }}", opset=11)
    assert_kept(model, {"x": CUBE})


def test_hardmax_inside_a_branch() -> None:
    model = model_of(
        "g (bool c, float[3,3,3] x) => (float[3,3,3] y) { y = If (c) <"
        " then_branch = t () => (float[3,3,3] a) { a = Hardmax(x) },"
        " else_branch = e () => (float[3,3,3] b) { b = Neg(x) }> }",
        opset=11,
    )
    for condition in (True, False):
        assert_kept(model, {"c": np.array(condition), "x": CUBE})


@pytest.mark.parametrize(("axis", "shape"), [(0, (3, 1, 1)), (1, (1, 3, 1)), (2, (1, 1, 3))])
@pytest.mark.parametrize(("name", "apply"), [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)])
def test_operands_that_begin_at_an_axis(name: str, apply: Any, axis: int, shape: tuple[int, ...]) -> None:
    model = model_of(  # onnxruntime has no kernels for opset 6
        "g (float[3,3,3] x, float[3] b) => (float[3,3,3] y)"
        f" {{ y = {name} <broadcast = 1, axis = {axis}> (x, b) }}",
        opset=6,
        ir_version=3,
    )
    b = np.array([1, 2, 4], np.float32)
    np.testing.assert_array_equal(imported(model, {"x": CUBE, "b": b}), apply(CUBE, b.reshape(shape)))


@pytest.mark.parametrize("name", ["Equal", "Greater", "Less"])
def test_comparisons_that_begin_at_an_axis_are_refused(name: str) -> None:
    model = model_of(
        "g (int32[3,3,3] x, int32[3] b) => (bool[3,3,3] y)"
        f" {{ y = {name} <broadcast = 1, axis = 1> (x, b) }}",
        opset=6,
        ir_version=3,
    )
    with pytest.raises(UnsupportedModelError, match=name):
        from_onnx(model)


def test_operands_of_unknown_rank_are_refused() -> None:
    model = model_of(
        "g (float[3,3,3] x, float b) => (float[3,3,3] y) { y = Add <broadcast = 1, axis = 1> (x, b) }",
        opset=6,
        ir_version=3,
    )
    model.graph.input[1].type.tensor_type.ClearField("shape")
    with pytest.raises(UnsupportedModelError, match="operator 'Add' of opset 6 at node 'y'"):
        from_onnx(model)


def test_functions_of_an_older_opset_are_refused() -> None:
    model = model_of(
        'g (float[3,3,3] x) => (float[3,3,3] y) { y = my.F(x) } <opset_import: ["": 11], domain: "my"> '
        "F (a) => (b) { b = Hardmax(a) }",
        imports='"my": 1',
    )
    with pytest.raises(UnsupportedModelError, match="'F' has another opset than the model"):
        from_onnx(model)
