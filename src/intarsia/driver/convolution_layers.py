"""By which algorithm an executable computes its convolutions, and how exact that is, measured."""

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
from intarsia.toolchain.native.simplified import simplified
from intarsia.toolchain.native.source import source_function
from intarsia.toolchain.native.toolchain import Native

_DIRECT: Final = ConvolutionAlgorithm.DIRECT.value
_CROP: Final = 18
"""Errors come from sums over channels: so many rows and columns have tiles of all kinds."""

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class ConvolutionLayer:
    """Convolutions of 3 by 3 of one shape, for which there are several algorithms.

    Attributes:
        shape: Channels of the input, rows and columns and channels of the result: "64x56x56x64".
        count: How many there are.
        algorithm: Which one native takes.
        error: Largest difference from float64, relative to the largest result, with the weights of the first
            of them and normally distributed inputs.
        direct_error: The same of direct sums.
    """

    shape: str
    count: int
    algorithm: str
    error: float
    direct_error: float

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return asdict(self)


def convolution_layers(kernels: Iterable[Kernel]) -> tuple[ConvolutionLayer, ...]:
    """The convolutions that native computes, those with most products first; some are built and run.

    Args:
        kernels: Of an executable; those of other toolchains say nothing.

    Raises:
        IntarsiaError: A layer cannot be built here.
    """
    found: dict[tuple[ConvolutionShape, str], list[Array]] = {}
    for kernel in kernels:
        if kernel.source.toolchain == Native.name:
            for shape, algorithm, weight in _convolutions(kernel.source):
                found.setdefault((shape, algorithm), []).append(weight)
    ordered = sorted(found.items(), key=lambda item: -np.prod(item[0][0]) * len(item[1]))
    return tuple(_layer(shape, algorithm, weights) for (shape, algorithm), weights in ordered)


def _convolutions(source: KernelSource) -> Iterator[tuple[ConvolutionShape, str, Array]]:
    text = Target(source.target).option("convolutions", ConvolutionAlgorithm.AUTO.value)
    algorithms = ConvolutionAlgorithms.parse(text)
    for expr in post_order(simplified(source_function(source))):
        shape = transformable_shape(expr) if isinstance(expr, Call) else None
        weight = expr.args[1] if shape is not None and isinstance(expr, Call) else None
        if shape is not None and isinstance(weight, Constant):
            tile = algorithms.tile(shape)
            yield shape, f"winograd_{tile}" if tile else _DIRECT, weight.data


def _layer(shape: ConvolutionShape, algorithm: str, weights: Sequence[Array]) -> ConvolutionLayer:
    weight, size = weights[0], (1, shape.read, min(shape.rows, _CROP), min(shape.columns, _CROP))
    data = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    expected = _sums(data, weight)
    largest = float(np.abs(expected).max()) or 1.0
    errors = {
        each: float(np.abs(_computed(data, weight, each) - expected).max()) / largest
        for each in {algorithm, _DIRECT}
    }
    return ConvolutionLayer(str(shape), len(weights), algorithm, errors[algorithm], errors[_DIRECT])


def _sums(data: Array, weight: Array) -> Array:
    """The convolution in float64, with a border of one zero."""
    wide = np.pad(data.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    cut = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
    made: Array = np.tensordot(cut[0], weight.astype(np.float64), axes=((0, 3, 4), (1, 2, 3)))
    return np.moveaxis(made, -1, 0)[None]


def _computed(data: Array, weight: Array, algorithm: str) -> Array:
    """The same by native."""
    x = Var("x", checked_type=TensorType.of(data))
    module = IRModule.from_expr(Function((x,), call("Conv", x, Constant(weight), pads=(1, 1, 1, 1))))
    target = Target.for_toolchain(Native.name, threads=1, convolutions=algorithm)
    with build(PartitionWhole(str(target))(module)) as executable:
        return np.asarray(executable.run_flat(data)[0])
