"""Error that an outlier of the input causes outside of its own windows, by convolution algorithm.

    python -m benchmarks.winograd_locality

A 3x3 convolution of 64 to 64 channels on 56 x 56 pixels by native on one thread, against float64. Errors are
relative to the sum of the absolute products of the same output, to which rounding errors are proportional.
Only accuracy is measured: a busy machine makes no difference.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt

import intarsia as ia
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.op import call
from intarsia.passes import partition_whole

CHANNELS, PIXELS = 64, 56
ALGORITHMS = ("direct", "winograd_2", "winograd_4", "winograd_6")
Floats = npt.NDArray[Any]
Convolution = Callable[[Floats], Floats]


def build_convolution(weights: Floats, algorithm: str) -> Convolution:
    """Build a convolution with native."""
    x = Var("x", checked_type=TensorType((1, CHANNELS, PIXELS, PIXELS), DType.FLOAT32))
    body = call("Conv", x, Constant(weights), kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    target = ia.Target(f"cpu -toolchain=native -threads=1 -convolutions={algorithm}")
    executable = ia.build(partition_whole(IRModule.from_expr(Function((x,), body)), target))
    return lambda data: np.array(executable.run_flat(data)[0], np.float64)


def convolve_in_float64(data: Floats, weights: Floats) -> Floats:
    """Compute the convolution in float64."""
    padded = np.pad(data.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    result = np.zeros(data.shape)
    for row in range(3):
        for column in range(3):
            part = padded[:, :, row : row + PIXELS, column : column + PIXELS]
            result += np.einsum("oc,nchw->nohw", weights[:, :, row, column].astype(np.float64), part)
    return result


def activations(rng: np.random.Generator) -> Iterator[tuple[str, Floats]]:
    """Yield inputs with distributions that occur in networks."""
    normal = rng.standard_normal((1, CHANNELS, PIXELS, PIXELS))
    relu = np.maximum(normal, 0)
    yield "N(0,1)", normal
    yield "ReLU", relu
    yield "GELU of N(0,3)", 1.5 * normal * (1 + np.vectorize(erf)(3 * normal / np.sqrt(2)))
    scores = np.exp(4 * rng.standard_normal((PIXELS * PIXELS, 49)))
    mixed = scores / scores.sum(1, keepdims=True) @ rng.standard_t(3, (49, CHANNELS))
    yield "attention, peaked", mixed.T.reshape(1, CHANNELS, PIXELS, PIXELS)
    yield "Student t, 3 degrees of freedom", rng.standard_t(3, normal.shape)
    yield "log-normal, sigma 2", rng.lognormal(0, 2, normal.shape)
    hot = relu.copy()
    hot[:, 5] *= 1500
    yield "ReLU, one channel x 1500", hot


def measure_spread(run: Convolution, weights: Floats, normal: Floats, value: float) -> str:
    """Return the largest error that one pixel causes outside of its windows, over all positions in a tile."""
    largest, lost = 0.0, 0
    # 12 is a multiple of the tile sizes 2, 4 and 6: the pixel takes each position of a tile.
    for position in range(24, 36):
        data = normal.astype(np.float32)
        data[0, 3, position, position] = 0
        wanted, scale = convolve_in_float64(data, weights), convolve_in_float64(np.abs(data), np.abs(weights))
        data[0, 3, position, position] = value
        results = run(data)
        outside = np.ones((PIXELS, PIXELS), bool)
        outside[position - 1 : position + 2, position - 1 : position + 2] = False
        finite = np.isfinite(results) & outside
        lost = max(lost, int((~np.isfinite(results) & outside).sum()))
        largest = max(largest, float((np.abs(results - wanted) / scale)[finite].max()))
    return f"{largest:.0e}" + (f", {lost} not finite" if lost else "")


def main() -> None:
    """Print both tables."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((CHANNELS, CHANNELS, 3, 3)) * np.sqrt(2 / (9 * CHANNELS))
    weights = weights.astype(np.float32)
    runs = {name: build_convolution(weights, name) for name in ALGORITHMS}
    print("input: largest error; relative L2 |", " | ".join(ALGORITHMS))
    for name, numbers in activations(rng):
        data = numbers.astype(np.float32)
        wanted, scale = convolve_in_float64(data, weights), convolve_in_float64(np.abs(data), np.abs(weights))
        off = [run(data) - wanted for run in runs.values()]
        cells = (
            f"{(np.abs(item) / scale).max():.0e}; {np.linalg.norm(item) / np.linalg.norm(wanted):.0e}"
            for item in off
        )
        print(name, "|", " | ".join(cells))
    print("one pixel: largest error outside of its windows |", " | ".join(ALGORITHMS))
    normal = rng.standard_normal((1, CHANNELS, PIXELS, PIXELS))
    for value in (1e2, 1e3, 1e6, 3e38, np.inf, np.nan):
        with np.errstate(all="ignore"):
            cells = (measure_spread(run, weights, normal, value) for run in runs.values())
            print(f"{value:g}", "|", " | ".join(cells))


if __name__ == "__main__":
    main()
