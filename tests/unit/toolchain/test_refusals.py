"""What the predicates leave out is what the engines refuse or get wrong: each case is tried."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import intarsia as ia
from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    Var,
    with_fields,
)
from intarsia.measure.inputs import random_inputs
from intarsia.op import absent, call, infer_call_type
from intarsia.passes import partition_whole
from intarsia.support.errors import IntarsiaError
from intarsia.toolchain import toolchain

pytestmark = pytest.mark.quick_tests(
    18,
    also=[
        "test_refused_calls_fail[onnxruntime-Mod-3]",
        "test_refused_calls_fail[openvino-BitShift-16]",
        "test_refused_calls_fail[openvino-Mod-9]",
        "test_refused_calls_fail[openvino-Resize-14]",
        "test_supported_calls_are_right[onnxruntime-BitShift-1]",
        "test_supported_calls_are_right[openvino-Tile-9]",
        "test_wrong_calls_are_wrong[openvino-Resize-1]",
    ],
)

NAMES = ("onnxruntime", "openvino")


def var(name: str, *shape: int, dtype: DType = DType.FLOAT32) -> Var:
    return Var(name, checked_type=TensorType(shape, dtype))


def numbers(*values: float, dtype: str = "int64") -> Constant:
    return Constant(np.array(values, dtype))


X = var("x", 2, 3)
I8, U16, F64 = (var("x", 2, 3, dtype=dtype) for dtype in (DType.INT8, DType.UINT16, DType.FLOAT64))
AXES = var("axes", 1, dtype=DType.INT64)
IMAGE = var("image", 1, 1, 4, 4)
SEQUENCE = var("sequence", 2, 3, 4)
GRU_W, GRU_R = Constant(np.ones((1, 15, 4), np.float32)), Constant(np.ones((1, 15, 5), np.float32))


def gru(layout: int) -> Call:
    return call("GRU", SEQUENCE, GRU_W, GRU_R, hidden_size=5, layout=layout, outputs=2)


def resize(**attrs: int | str) -> Call:
    args = (IMAGE, absent(), absent(), numbers(1, 1, 2, 3))
    untyped = Call(Op("Resize"), args, Attrs(attrs))
    return with_fields(untyped, checked_type=infer_call_type(untyped.op, args, untyped.attrs))


REFUSED: list[tuple[str, Call]] = [
    ("onnxruntime", call("Swish", X)),
    ("onnxruntime", call("BitShift", I8, I8, direction="LEFT")),
    ("onnxruntime", call("Max", U16, U16)),
    ("onnxruntime", call("Mod", X, X)),
    ("onnxruntime", call("Add", *(var(name, 2, dtype=DType.BFLOAT16) for name in "xy"))),
    ("onnxruntime", call("Cast", X, to=22)),
    ("onnxruntime", gru(layout=1)),
    ("openvino", call("CumProd", X, Constant(np.array(0, np.int64)))),
    ("openvino", call("Det", IMAGE)),
    ("openvino", call("Mod", X, X)),
    ("openvino", call("Unsqueeze", X, AXES)),
    ("openvino", call("ReduceSum", X, var("axes", 2, dtype=DType.INT64), keepdims=0)),
    ("openvino", call("Cast", X, to=22)),
    ("openvino", call("Pad", X, numbers(1, 1, 1, 1), mode="wrap")),
    ("openvino", resize(coordinate_transformation_mode="tf_crop_and_resize")),
    ("openvino", gru(layout=1)),
    ("openvino", call("BitShift", I8, Constant(np.array([[6, 7, 7]], np.int8)), direction="LEFT")),
    ("openvino", call("Add", F64, Constant(np.full((2, 3), 1e300)))),
]

WRONG: list[tuple[str, Call]] = [
    ("openvino", call("LRN", IMAGE, size=3, bias=1.5)),
    ("openvino", resize(mode="linear", antialias=1)),
    ("openvino", resize(mode="cubic", exclude_outside=1)),
]

SUPPORTED: list[tuple[str, Call]] = [
    ("onnxruntime", call("Mod", X, X, fmod=1)),
    ("onnxruntime", call("BitShift", *(var(name, 2, dtype=DType.UINT8) for name in "xy"), direction="LEFT")),
    ("onnxruntime", call("Max", X, X)),
    ("onnxruntime", gru(layout=0)),
    ("openvino", call("Mod", X, X, fmod=1)),
    ("openvino", call("Unsqueeze", X, numbers(0))),
    ("openvino", call("ReduceSum", X, numbers(0, 1), keepdims=0)),
    ("openvino", call("ReduceSum", X, AXES, keepdims=0)),
    ("openvino", call("ReduceSum", X, var("axes", 2, dtype=DType.INT64), keepdims=1)),
    ("openvino", call("Tile", X, numbers(2, 2))),
    ("openvino", call("Pad", X, numbers(1, 1, 1, 1), mode="reflect")),
    ("openvino", call("LRN", IMAGE, size=3, bias=2.0)),
    ("openvino", resize(mode="linear")),
    ("openvino", gru(layout=0)),
]


def program(found: Call) -> IRModule:
    params = dict.fromkeys(arg for arg in found.args if isinstance(arg, Var))
    return IRModule.from_expr(Function(tuple(params), found))


def _axes(mod: IRModule) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Axes that exist."""
    types = {param.name: param.checked_type for param in mod["main"].params}
    axes = types.get("axes")
    return {"axes": np.arange(axes.static_shape[0])} if isinstance(axes, TensorType) else {}


def run(mod: IRModule) -> list[object]:
    inputs = random_inputs(mod["main"]) | _axes(mod)
    with ia.build(mod) as executable:
        return list(executable.run_flat(*inputs.values()))


def runs(name: str, found: Call) -> list[object]:
    return run(partition_whole(program(found), ia.Target.for_toolchain(name)))


def ids(cases: list[tuple[str, Call]]) -> list[str]:
    return [f"{name}-{found.op}-{number}" for number, (name, found) in enumerate(cases)]


@pytest.mark.parametrize(("name", "found"), REFUSED, ids=ids(REFUSED))
def test_refused_calls_fail(name: str, found: Call) -> None:
    assert not toolchain(name).supports(found)
    with pytest.raises(IntarsiaError):
        runs(name, found)


@pytest.mark.parametrize(("name", "found"), WRONG, ids=ids(WRONG))
def test_wrong_calls_are_wrong(name: str, found: Call) -> None:
    assert not toolchain(name).supports(found)
    expected, given = (np.asarray(results[0]) for results in (run(program(found)), runs(name, found)))
    assert expected.shape != given.shape or not np.allclose(expected, given, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("name", "found"), SUPPORTED, ids=ids(SUPPORTED))
def test_supported_calls_are_right(name: str, found: Call) -> None:
    assert toolchain(name).supports(found)
    expected, given = (np.asarray(results[0]) for results in (run(program(found)), runs(name, found)))
    np.testing.assert_allclose(given, expected, rtol=1e-3, atol=1e-3)


def test_calls_without_known_types_are_offered() -> None:
    unknown: Callable[[str], Expr] = Var
    for name in NAMES:
        assert toolchain(name).supports(call("Relu", unknown("x")))
