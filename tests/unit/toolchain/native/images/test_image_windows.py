"""Windows, factors and transposed convolutions whose sizes depend on those of an image of any size."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from intarsia import build, from_onnx
from intarsia.ir import IRModule
from intarsia.passes import bind_sizes, partition_whole
from intarsia.support.errors import CompileError, ExecutionError, InvalidModelError
from intarsia.target import Target
from intarsia.toolchain.native.images.image_kernel import ImageKernel

SIZES: Final = ((1, 16, 16), (2, 17, 23), (1, 5, 7), (1, 1, 1), (3, 4, 9), (1, 31, 8), (1, 2, 3), (1, 16, 16))
"""Images, height and width: multiples of strides and not, primes, one pixel, and the first size again."""
CHANNELS: Final = 6
TARGET: Final = Target("cpu -toolchain=native -threads=1")


def module_of(operator: str, weights: tuple[int, ...] = (), **attributes: object) -> IRModule:
    """Return a program with one operator behind an elementwise one."""
    array = np.random.default_rng(0).standard_normal(weights).astype(np.float32)
    return program(operator, ["r", "k"] if weights else ["r"], array, **attributes)


def program(operator: str, inputs: list[str], array: np.ndarray, **attributes: object) -> IRModule:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node(operator, inputs, ["y"], **attributes),
    ]
    params = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", CHANNELS, "h", "w"])]
    results = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    weights = [numpy_helper.from_array(array, "k")] if "k" in inputs else []
    graph = helper.make_graph(nodes, "g", params, results, weights)
    return from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))


def check(module: IRModule, *, by_reference: bool = True, least: int = 1) -> None:
    """Compare native for all sizes with the reference, or with native for each size.

    Args:
        module: The program.
        by_reference: Whether the reference is right about it.
        least: Rows and columns below which native refuses an image.
    """
    compared = 0
    with build(partition_whole(module, TARGET)) as executable:
        (kernel,) = executable.kernels
        assert isinstance(kernel, ImageKernel)
        for count, height, width in SIZES:
            x = np.random.default_rng(height).standard_normal((count, CHANNELS, height, width))
            given = {"x": x.astype(np.float32)}
            bound = bind_sizes(module, {"n": count, "h": height, "w": width})
            kernel._arena.array[:] = 0xFF  # every number is NaN
            if min(height, width) < least:
                with pytest.raises(ExecutionError, match="too small"):
                    executable.run_flat(**given)
                continue
            try:
                program = bound if by_reference else partition_whole(bound, TARGET)
                (right,) = build(program).run_flat(**given)
            except (CompileError, InvalidModelError):
                continue
            assert isinstance(right, np.ndarray)
            if not right.size:
                with pytest.raises(ExecutionError):
                    executable.run_flat(**given)
                continue
            (result,) = executable.run_flat(**given)
            assert isinstance(result, np.ndarray)
            assert result.shape == right.shape
            np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-4)
            compared += 1
    assert compared > len(SIZES) // 2


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("taps", "stride", "dilation"), [(3, 2, 1), (5, 3, 1), (1, 2, 1), (2, 2, 2)])
def test_padding_of_the_same_size_depends_on_the_image(
    mode: str, taps: int, stride: int, dilation: int
) -> None:
    attributes = {"auto_pad": mode, "strides": [stride] * 2, "dilations": [dilation] * 2}
    check(module_of("Conv", (8, CHANNELS, taps, taps), **attributes))


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("taps", "stride"), [(3, 2), (2, 2)])
def test_pools_have_padding_of_the_same_size(mode: str, taps: int, stride: int) -> None:
    module = module_of("MaxPool", auto_pad=mode, strides=[stride] * 2, kernel_shape=[taps] * 2)
    check(module, by_reference=mode == "SAME_UPPER")  # the reference is left out for the other one


def test_windows_shorter_than_their_stride_are_refused() -> None:
    module = module_of("Conv", (8, CHANNELS, 2, 2), auto_pad="SAME_UPPER", strides=[3, 3])
    with pytest.raises(CompileError, match="shorter than their stride"):
        build(partition_whole(module, TARGET))


@pytest.mark.parametrize(
    ("taps", "stride", "pads"),
    [
        (3, 2, (0, 0, 0, 0)),
        (2, 2, (0, 0, 0, 0)),
        (3, 2, (1, 1, 1, 1)),
        (3, 3, (0, 0, 1, 1)),
        (2, 3, (1, 0, 1, 0)),
    ],
)
def test_windows_of_pools_reach_behind_the_end(taps: int, stride: int, pads: tuple[int, ...]) -> None:
    """The reference pads both ends with ceil_mode; type inference gives one pixel 3 x 3 windows a result."""
    module = module_of("MaxPool", kernel_shape=[taps] * 2, strides=[stride] * 2, pads=pads, ceil_mode=1)
    check(module, by_reference=False, least=taps - 1 if not any(pads) else 1)


@pytest.mark.parametrize("scales", [(1.5, 0.75), (2.0, 1.25), (0.7, 1.1)])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric"])
def test_factors_are_fractions(scales: tuple[float, float], mode: str, coordinates: str) -> None:
    factors = np.array([1, 1, *scales], np.float32)
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    check(program("Resize", ["r", "", "k"], factors, **attributes))


@pytest.mark.parametrize("groups", [1, 2, CHANNELS])
@pytest.mark.parametrize(
    ("taps", "stride", "pad", "more", "dilation"),
    [(2, 2, 0, 0, 1), (3, 2, 1, 1, 1), (3, 1, 2, 0, 2), (3, 2, 3, 1, 3), (4, 2, 4, 0, 3)],
)
def test_transposed_convolutions_have_groups_and_dilations(
    groups: int, taps: int, stride: int, pad: int, more: int, dilation: int
) -> None:
    attributes: dict[str, object] = {
        "strides": [stride] * 2,
        "pads": [pad] * 4,
        "output_padding": [more] * 2,
        "dilations": [dilation] * 2,
        "group": groups,
    }
    module = module_of("ConvTranspose", (CHANNELS, 4, taps, taps), **attributes)
    check(module, by_reference=groups == 1)  # the reference fails with groups of several results


@pytest.mark.parametrize("multiplier", [2, 3])
def test_groups_of_one_channel_compute_several(multiplier: int) -> None:
    weights = (CHANNELS * multiplier, 1, 3, 3)
    check(module_of("Conv", weights, group=CHANNELS, pads=[1] * 4))
