"""Images with few pixels, which are computed pixel by pixel, beside ones that are just too large for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from intarsia import build, from_onnx
from intarsia.ir import IRModule
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.toolchain.native.images.image_kernel import ImageKernel

CHANNELS: Final = 24
SIZES: Final = (
    *((1, 1, 1), (2, 2, 3), (1, 3, 3), (1, 1, 11), (1, 11, 1), (1, 4, 4), (3, 4, 5), (1, 5, 4), (1, 9, 7)),
    *((2, 7, 9), (1, 7, 10), (1, 8, 8), (1, 3, 13), (1, 13, 3), (1, 5, 31), (1, 10, 17), (1, 1, 1)),
)
"""Images, height and width on both sides of 4 columns, 10 columns, and 4 tiles of 4 x 4; the first again."""


def network(nodes: list[onnx.NodeProto], **weights: tuple[int, ...]) -> IRModule:
    """Return a program from x to y with random weights of some shapes."""
    rng = np.random.default_rng(5)
    constants = [
        numpy_helper.from_array((rng.standard_normal(shape) / 8).astype(np.float32), name)
        for name, shape in weights.items()
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", CHANNELS, "h", "w"])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))


def check(module: IRModule, options: str, sizes: Sequence[tuple[int, int, int]] = SIZES) -> None:
    """Compare native with the reference for all sizes; the memory of images is all NaN in front of a call."""
    target, reference = Target(f"cpu -toolchain=native {options}"), build(module)
    with build(partition_whole(module, target)) as executable:
        (kernel,) = executable.kernels
        assert isinstance(kernel, ImageKernel)
        for count, *size in sizes:
            x = np.random.default_rng(size).standard_normal((count, CHANNELS, *size)).astype(np.float32)
            kernel._arena.array[:] = 0xFF
            (result,), (right,) = executable.run_flat(x=x), reference.run_flat(x=x)
            np.testing.assert_allclose(np.asarray(result), np.asarray(right), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", ["-mcpu=haswell -threads=2", "-threads=1"])
@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((40, CHANNELS, 1, 1), {}),
        ((40, CHANNELS, 1, 1), {"strides": [2, 2]}),
        ((CHANNELS, CHANNELS, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((40, CHANNELS, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ((40, CHANNELS, 3, 2), {"pads": [4, 1, 4, 1], "dilations": [3, 1]}),
        ((48, 8, 3, 3), {"pads": [1, 1, 1, 1], "group": 3}),
        ((CHANNELS, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": CHANNELS}),
        ((CHANNELS, 1, 5, 5), {"pads": [2, 2, 2, 2], "strides": [2, 2], "group": CHANNELS}),
    ],
)
def test_convolutions_of_small_images_are_right(
    options: str, shape: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Conv", ["r", "k"], ["c"], **attributes),
        helper.make_node("HardSwish", ["c"], ["y"]),
    ]
    check(network(nodes, k=shape), options)


@pytest.mark.parametrize("options", ["-mcpu=haswell -threads=1", "-threads=2"])
def test_small_images_have_borders_pools_and_sums(options: str) -> None:
    """A block with a residual sum, whose middle has a border, is joined with a pool of what it reads."""
    nodes = [
        helper.make_node("Conv", ["x", "expand"], ["e"]),
        helper.make_node("Relu", ["e"], ["f"]),
        helper.make_node("Conv", ["f", "between"], ["b"], pads=[1] * 4),
        helper.make_node("Conv", ["b", "project"], ["p"]),
        helper.make_node("Add", ["p", "x"], ["s"]),
        helper.make_node("MaxPool", ["x"], ["m"], kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4),
        helper.make_node("AveragePool", ["f"], ["a"], kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1),
        helper.make_node("Concat", ["s", "m", "a"], ["y"], axis=1),
    ]
    weights = {"expand": (32, CHANNELS, 1, 1), "between": (32, 32, 3, 3), "project": (CHANNELS, 32, 1, 1)}
    check(network(nodes, **weights), options)


@pytest.mark.parametrize("added", ["e", "d"])
def test_weights_beyond_the_cache_are_read_once_for_all_pixels(added: str) -> None:
    """1.2 MiB of weights: loops over planes are outside of chunks, unless the input is added too."""
    nodes = [
        helper.make_node("Conv", ["x", "wide"], ["e"]),
        helper.make_node("Conv", ["e", "deep"], ["d"]),
        helper.make_node("Add", ["d", added], ["y"]),
    ]
    check(network(nodes, wide=(576, CHANNELS, 1, 1), deep=(576, 576, 1, 1)), "-threads=2")


@pytest.mark.parametrize("options", [f"-mcpu=haswell -threads={threads}" for threads in (1, 2, 3)])
def test_moves_and_windows_are_right_with_and_without_enough_work_for_threads(options: str) -> None:
    """Threads share moves of 24 channels from 683 pixels on, and depthwise windows from 76."""
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], pads=[1] * 4, group=CHANNELS),
        helper.make_node("MaxPool", ["c"], ["m"], kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4),
        helper.make_node("GlobalAveragePool", ["c"], ["g"]),
        helper.make_node("Mul", ["m", "g"], ["y"]),
    ]
    sizes = ((1, 3, 4), (1, 8, 9), (2, 8, 10), (1, 22, 31), (1, 22, 32), (2, 33, 21), (1, 3, 4))
    module = network(nodes, k=(CHANNELS, 1, 3, 3))
    check(module, options, sizes)
