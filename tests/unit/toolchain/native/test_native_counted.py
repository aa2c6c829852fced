"""NonZero and NonMaxSuppression on native: exactly what onnxruntime gives, in its order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.onnx_models import model_of, onnxruntime_outputs

import intarsia as ia
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, IRModule, post_order
from intarsia.support.errors import ArtifactError, CompileError
from intarsia.toolchain.native.blob import read_blob, write_blob
from intarsia.toolchain.native.build import build_region
from intarsia.toolchain.native.counted import counted_obstacle

pytestmark = pytest.mark.quick_tests(7, also=["test_without_a_limit_nothing_is_kept"])


def native(model: Any) -> Any:
    return ia.build(from_onnx(model), "cpu -toolchain=native -threads=1")


def outputs(executable: Any, feeds: dict[str, Any]) -> list[Any]:
    result = executable(**feeds)
    return list(result) if isinstance(result, tuple) else [result]


def assert_equal(found: list[Any], expected: list[Any]) -> None:
    for value, wanted in zip(found, expected, strict=True):
        assert value.dtype == wanted.dtype
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("dtype", ["float", "bool", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 5), (0, 3)])
def test_indices_of_what_is_not_zero(dtype: str, shape: tuple[int, ...]) -> None:
    dims = ",".join(map(str, shape))
    model = model_of(f"g ({dtype}[{dims}] x) => (int64[{len(shape)},k] y) {{ y = NonZero (x) }}", opset=21)
    executable = native(model)
    kind = {"float": np.float32}.get(dtype, dtype)
    for fill in (0, 1, 2):
        x = np.random.default_rng(fill).integers(0, fill + 1, shape).astype(kind)
        assert_equal(outputs(executable, {"x": x}), onnxruntime_outputs(model, {"x": x}))


def test_nan_is_not_zero_and_negative_zero_is() -> None:
    model = model_of("g (float[4] x) => (int64[1,k] y) { y = NonZero (x) }", opset=21)
    x = np.array([np.nan, -0.0, 1e-45, 0.0], np.float32)
    np.testing.assert_array_equal(outputs(native(model), {"x": x})[0], [[0, 2]])


def test_indices_behind_other_operators_and_as_rows(tmp_path: Any) -> None:
    model = model_of(
        "g (float[4,5] x) => (int64[k,2] y, float[4,5] z, int64[2,k] w) {"
        " z = Relu (x)  w = NonZero (z)  y = Transpose <perm = [1, 0]> (w) }",
        opset=21,
    )
    x = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    executable = native(model)
    expected = onnxruntime_outputs(model, {"x": x})
    assert_equal(outputs(executable, {"x": x}), expected)
    executable.save(tmp_path / "rows.intarsia")
    assert_equal(outputs(ia.load(tmp_path / "rows.intarsia"), {"x": x}), expected)


def test_an_operator_behind_the_indices_is_refused() -> None:
    model = model_of(
        "g (float[4] x) => (int64[1,k] y) { w = NonZero (x)  y = Neg (w) }",
        opset=21,
    )
    with pytest.raises(CompileError, match="has no native kernel"):
        native(model)


def test_scalars_and_open_shapes_are_refused() -> None:
    for shape in ("float", "float[n]"):
        model = model_of(f"g ({shape} x) => (int64[r,k] y) {{ y = NonZero (x) }}", opset=21)
        (call,) = (node for node in post_order(from_onnx(model)["main"]) if isinstance(node, Call))
        assert counted_obstacle(call) is not None


def suppression(
    batches: int, classes: int, boxes: int, *, center: int = 0, inputs: str = "l, i, s", **constants: Any
) -> Any:
    """A model of one NonMaxSuppression; what is not in `constants` is an input."""
    kinds = {"l": "int64", "i": "float", "s": "float"}
    names = [name.strip() for name in inputs.split(",") if name.strip()]
    given_inputs = [f"{kinds[name]}[1] {name}" for name in names if name and name not in constants]
    params = ", ".join(
        [f"float[{batches},{boxes},4] b", f"float[{batches},{classes},{boxes}] c", *given_inputs]
    )
    args = ", ".join(["b", "c", *names])
    text = f"y = NonMaxSuppression <center_point_box = {center}> ({args})"
    return model_of(f"g ({params}) => (int64[k,3] y) {{ {text} }}", opset=21, **constants)


def detections(seed: int, batches: int, classes: int, boxes: int, center: int) -> dict[str, Any]:
    """Boxes and scores with ties: coordinates are integers, scores are eighths."""
    generator = np.random.default_rng(seed)
    if center:
        corners = (
            generator.integers(0, 12, (batches, boxes, 2)),
            generator.integers(0, 8, (batches, boxes, 2)),
        )
        b = np.concatenate(corners, axis=-1)
    else:
        b = generator.integers(0, 12, (batches, boxes, 4))  # corners in any order, and empty boxes
    scores = generator.integers(-2, 9, (batches, classes, boxes)) / 8
    return {"b": b.astype(np.float32), "c": scores.astype(np.float32)}


def scalars(limit: int, overlap: float, score: float) -> dict[str, Any]:
    return {
        "l": np.array([limit], np.int64),
        "i": np.array([overlap], np.float32),
        "s": np.array([score], np.float32),
    }


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize(("batches", "classes", "boxes"), [(1, 1, 1), (1, 3, 2), (2, 2, 37), (1, 1, 64)])
def test_suppression_with_ties(center: int, batches: int, classes: int, boxes: int) -> None:
    model = suppression(batches, classes, boxes, center=center)
    executable = native(model)
    for seed, limits in enumerate(
        [(5, 0.5, 0.0), (1, 0.25, 0.5), (1000, 1.0, -1.0), (0, 0.5, 0.0), (7, 0.0, 0.3)]
    ):
        feeds = {**detections(seed, batches, classes, boxes, center), **scalars(*limits)}
        assert_equal(outputs(executable, feeds), onnxruntime_outputs(model, feeds))


@settings(max_examples=examples(25), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    limit=st.integers(0, 30),
    overlap=st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 0.75]),
    score=st.sampled_from([-1.0, 0.0, 0.125, 0.5, 1.0]),
)
def test_suppression_of_anything(seed: int, limit: int, overlap: float, score: float) -> None:
    model = suppression(1, 2, 23)
    feeds = {**detections(seed, 1, 2, 23, 0), **scalars(limit, overlap, score)}
    assert_equal(outputs(_compiled(), feeds), onnxruntime_outputs(model, feeds))


_kept: list[Any] = []


def _compiled() -> Any:
    """The executable of `suppression(1, 2, 23)`, made once."""
    if not _kept:
        _kept.append(native(suppression(1, 2, 23)))
    return _kept[0]


@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["l", "l, i", "l, i, s"])
def test_suppression_with_constants_and_without_thresholds(inputs: str) -> None:
    constants = {name: value for name, value in scalars(4, 0.5, 0.25).items() if name in inputs.split(", ")}
    model = suppression(1, 2, 20, inputs=inputs, **constants)
    feeds = detections(3, 1, 2, 20, 0)
    assert_equal(outputs(native(model), feeds), onnxruntime_outputs(model, feeds))


def test_without_a_limit_nothing_is_kept() -> None:
    feeds = detections(3, 1, 2, 20, 0)
    assert outputs(native(suppression(1, 2, 20, inputs="")), feeds)[0].shape == (0, 3)


def test_a_damaged_width_is_an_artifact_error() -> None:
    model = model_of("g (float[4] x) => (int64[1,k] y) { y = NonZero (x) }", opset=21)
    module: IRModule = from_onnx(model)
    executable = ia.build(module, "cpu -toolchain=native -threads=1")
    (kernel,) = executable.kernels
    blob = write_blob(build_region(kernel.source))
    damaged = blob.replace(b'"counted":[[0,1,true]]', b'"counted":[[9,1,true]]')
    assert damaged != blob
    with pytest.raises(ArtifactError, match="refer to number 9 of 1"):
        read_blob(damaged, {})
