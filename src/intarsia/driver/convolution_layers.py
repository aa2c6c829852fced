"""Algorithms of the convolutions of an executable, with their measured errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.build import build
from intarsia.ir import Call, Constant, Function, IRModule, TensorType, Var, post_order
from intarsia.native.graph.convolution_algorithm import (
    ConvolutionAlgorithm,
    ConvolutionAlgorithms,
    ConvolutionShape,
    transformable_shape,
)
from intarsia.op import call
from intarsia.passes import PartitionWhole
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.target import Target
from intarsia.toolchain.native.plan import costs_of
from intarsia.toolchain.native.simplified import simplified
from intarsia.toolchain.native.source_context import source_context
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.source_function import source_function

_DIRECT: Final = ConvolutionAlgorithm.DIRECT.value
_CROP: Final = 18
"""Maximum rows and columns of the test input. Errors come from sums over channels, and an image of this size
has tiles of all kinds (inner, border, masked)."""

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class ConvolutionLayer:
    """The 3x3 convolutions of one shape, which have several algorithms.

    Attributes:
        shape: Input channels, output rows, columns and channels: "64x56x56x64"; with "/4" behind it for a
            convolution of 4 groups.
        count: Number of convolutions of this shape.
        algorithm: Algorithm that native uses.
        error: Largest difference from float64, relative to the largest result, with the weights of the first
            convolution
            and normally distributed inputs.
        direct_error: Error of the direct algorithm, measured likewise.
    """

    shape: str
    count: int
    algorithm: str
    error: float
    direct_error: float

    def to_json(self) -> dict[str, Any]:
        """Return the layer as plain data."""
        return asdict(self)


def measure_convolution_layers(kernels: Iterable[Kernel]) -> tuple[ConvolutionLayer, ...]:
    """Measure the convolutions that native computes, largest first; one of each shape is built and run.

    Args:
        kernels: Kernels of an executable; those of other toolchains are skipped.

    Raises:
        IntarsiaError: A layer cannot be built here.
    """
    weights_of: dict[tuple[ConvolutionShape, str], list[Array]] = {}
    for kernel in kernels:
        if kernel.source.toolchain == Native.name:
            for shape, algorithm, weight in _convolutions(kernel.source):
                weights_of.setdefault((shape, algorithm), []).append(weight)
    ordered = sorted(weights_of.items(), key=lambda item: -item[0][0].multiply_adds * len(item[1]))
    return tuple(_measure_layer(shape, algorithm, weights) for (shape, algorithm), weights in ordered)


def _convolutions(source: KernelSource) -> Iterator[tuple[ConvolutionShape, str, Array]]:
    target = Target(source.target)
    algorithms = ConvolutionAlgorithms.parse(target.option("convolutions", ConvolutionAlgorithm.AUTO.value))
    function = simplified(source_function(source), source_context(source))
    costs = costs_of(target, function)
    for expr in post_order(function):
        shape = transformable_shape(expr) if isinstance(expr, Call) else None
        weight = expr.args[1] if shape is not None and isinstance(expr, Call) else None
        if shape is not None and isinstance(weight, Constant):
            tile = algorithms.tile(shape, costs)
            yield shape, f"winograd_{tile}" if tile else _DIRECT, weight.data


def _measure_layer(shape: ConvolutionShape, algorithm: str, weights: Sequence[Array]) -> ConvolutionLayer:
    weight, size = weights[0], (1, shape.input_channels, min(shape.rows, _CROP), min(shape.columns, _CROP))
    data = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    expected = _compute_float64(data, weight, shape.dilation)
    largest = float(np.abs(expected).max()) or 1.0
    errors = {
        tested: float(np.abs(_compute_native(data, weight, tested, shape.dilation) - expected).max())
        / largest
        for tested in {algorithm, _DIRECT}
    }
    return ConvolutionLayer(str(shape), len(weights), algorithm, errors[algorithm], errors[_DIRECT])


def _compute_float64(data: Array, weight: Array, dilation: int) -> Array:
    """Compute the convolution in float64, with a padding of the dilation."""
    group_channels = weight.shape[1]
    groups = data.shape[1] // group_channels
    wide = np.pad(data.astype(np.float64), ((0, 0), (0, 0), (dilation,) * 2, (dilation,) * 2))
    cut = np.lib.stride_tricks.sliding_window_view(wide, (2 * dilation + 1,) * 2, axis=(2, 3))
    of_groups = zip(
        np.split(cut[0, ..., ::dilation, ::dilation], groups),
        np.split(weight.astype(np.float64), groups),
        strict=True,
    )
    results = [np.tensordot(read, taps, axes=((0, 3, 4), (1, 2, 3))) for read, taps in of_groups]
    result: Array = np.moveaxis(np.concatenate(results, axis=-1), -1, 0)[None]
    return result


def _compute_native(data: Array, weight: Array, algorithm: str, dilation: int) -> Array:
    """Compute the convolution by native with an algorithm."""
    x = Var("x", checked_type=TensorType.of(data))
    groups = data.shape[1] // weight.shape[1]
    convolution = call(
        "Conv", x, Constant(weight), pads=(dilation,) * 4, dilations=(dilation, dilation), group=groups
    )
    module = IRModule.from_expr(Function((x,), convolution))
    target = Target.for_toolchain(Native.name, threads=1, convolutions=algorithm)
    with build(PartitionWhole(str(target))(module)) as executable:
        return np.asarray(executable.run_flat(data)[0])
