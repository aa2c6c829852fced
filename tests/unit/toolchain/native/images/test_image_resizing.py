"""Resize of images of any size to the size of another image."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
import pytest
from onnx import helper

from intarsia import build, from_onnx
from intarsia.ir import IRModule
from intarsia.passes import bind_sizes, partition_whole
from intarsia.support.errors import CompileError
from intarsia.target import Target

MODES: Final = (
    {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
    {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
    *(
        {"mode": "nearest", "coordinate_transformation_mode": coordinates, "nearest_mode": nearest}
        for coordinates, nearest in (
            ("asymmetric", "floor"),
            ("half_pixel", "round_prefer_floor"),
            ("half_pixel", "round_prefer_ceil"),
            ("align_corners", "ceil"),
        )
    ),
)
SIZES: Final = ((5, 7, 10, 9), (12, 8, 5, 4), (1, 1, 3, 17), (9, 30, 1, 1), (6, 6, 6, 6))
"""Rows and columns of the argument, then of the result: enlarged, reduced, of one pixel, to one pixel."""


def fitted(mode: dict[str, str]) -> onnx.NodeProto:
    return helper.make_node("Resize", ["c", "", "", "sizes"], ["r"], **mode)


def module_of(nodes: list[onnx.NodeProto]) -> IRModule:
    """Return a program that resizes its first parameter to the size of the second."""
    for number, node in enumerate(nodes):
        node.output[0] = f"r{number}"
    before = [
        helper.make_node("Relu", ["x"], ["c"]),
        helper.make_node("Shape", ["c"], ["first"], start=0, end=2),
        helper.make_node("Shape", ["y"], ["last"], start=2),
        helper.make_node("Concat", ["first", "last"], ["sizes"], axis=0),
    ]
    params = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, "h", "w"]),
        helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 2, "p", "q"]),
    ]
    results = [
        helper.make_tensor_value_info(node.output[0], onnx.TensorProto.FLOAT, ["n", 3, "p", "q"])
        for node in nodes
    ]
    graph = helper.make_graph([*before, *nodes], "fit", params, results)
    return from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9))


@pytest.mark.slow
def test_results_have_the_size_of_another_image() -> None:
    """Native for one size divides whole numbers as well; the reference rounds positions to floats."""
    module = module_of([fitted(mode) for mode in MODES])
    target = Target("cpu -toolchain=native -threads=1")
    with build(partition_whole(module, target)) as executable:
        for h, w, p, q in SIZES:
            rng = np.random.default_rng(h)
            x, y = (rng.standard_normal((2, *shape)).astype(np.float32) for shape in ((3, h, w), (2, p, q)))
            static = bind_sizes(module, {"n": 2, "h": h, "w": w, "p": p, "q": q})
            right = build(partition_whole(static, target)).run_flat(x=x, y=y)
            for result, expected in zip(executable.run_flat(x=x, y=y), right, strict=True):
                assert isinstance(result, np.ndarray)
                assert isinstance(expected, np.ndarray)
                np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ({"mode": "cubic"}, "cubic"),
        ({"mode": "linear", "antialias": 1}, "antialias"),
        ({"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}, "pytorch_half_pixel"),
    ],
)
def test_other_forms_are_refused(mode: dict[str, str], reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        build(partition_whole(module_of([fitted(mode)]), Target("cpu -toolchain=native -threads=1")))
