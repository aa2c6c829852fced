"""Computations that schedule searches are compared on, declared for native kernels.

`benchmarks/tvm_search.py` declares the same for apache-tvm. In both, a schedule may choose the layout of
weights. Packing them is not part of the time, because models pack constants when they are built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.blocked_convolution import blocked_convolution, depthwise_convolution
from intarsia.native.te.operators.convolution import layout_free
from intarsia.native.te.operators.windows import Window, tap_indices

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class SearchWorkload:
    """A computation to search a schedule for.

    Attributes:
        name: Name in tables and for `--tasks`.
        kind: Kind of computation. "convolution" and "depthwise" have layout NHWC; blocked kinds have channels
        in
            blocks of `lanes`, as inside models.
        sizes: Sizes by name; `made` is the number of output channels.
    """

    name: str
    kind: str
    sizes: Mapping[str, int]

    @property
    def json(self) -> dict[str, Any]:
        """JSON form for other processes."""
        return {"kind": self.kind, "sizes": dict(self.sizes)}

    @property
    def operations(self) -> int:
        """Number of multiplications and additions."""
        sizes = self.sizes
        if self.kind == "dense":
            return 2 * sizes["rows"] * sizes["columns"] * sizes["depth"]
        if self.kind == "softmax":
            return 4 * sizes["rows"] * sizes["width"]
        summed = 1 if "depthwise" in self.kind else sizes["channels"]
        return 2 * self.window.count**2 * sizes["made"] * sizes["taps"] ** 2 * summed

    @property
    def window(self) -> Window:
        """Window of a convolution along each dimension."""
        size, taps, stride, pad = (self.sizes[key] for key in ("size", "taps", "stride", "pad"))
        return Window(size, (size + 2 * pad - taps) // stride + 1, taps, stride, 1, pad, pad)

    def dag(self) -> ComputeDAG:
        """Return the declaration."""
        match self.kind:
            case "convolution" | "depthwise":
                return ComputeDAG(tuple(_channels_last(self)))
            case "dense":
                return ComputeDAG(tuple(_product(self.sizes)))
            case "softmax":
                return ComputeDAG(tuple(_softmax(self.sizes)))
            case _:
                return ComputeDAG(tuple(_blocked(self)))

    def contents(self, seed: int = 0) -> dict[str, Array]:
        """Return random arrays for the placeholders."""
        random = np.random.default_rng(seed)
        shapes = {tensor.buffer.name: tensor.shape for tensor in self.dag().placeholders}
        return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _constant(shape: Sequence[int]) -> te.Tensor:
    return te.placeholder(tuple(shape), name="w", attrs={"constant": 1})


def _channels_last(workload: SearchWorkload) -> list[te.Tensor]:
    sizes, window = workload.sizes, workload.window
    channels, filters, taps = sizes["channels"], sizes["made"], sizes["taps"]
    is_depthwise = workload.kind == "depthwise"
    x = te.placeholder((1, window.extent, window.extent, channels), name="x")
    w = _constant((taps, taps, channels) if is_depthwise else (taps, taps, channels, filters))
    read = _padded(x, window) if window.begin else x
    p, q, c = te.reduce_axis(taps, "p"), te.reduce_axis(taps, "q"), te.reduce_axis(channels, "c")

    def of_channel(n: Expression, i: Expression, j: Expression, o: Expression) -> Reduction:
        at = tap_indices((window, window), (i, j), (p, q))
        return te.sum(read[(n, *at, o)] * w[p, q, o], (p, q))

    def of_all(n: Expression, i: Expression, j: Expression, o: Expression) -> Reduction:
        at = tap_indices((window, window), (i, j), (p, q))
        return te.sum(read[(n, *at, c)] * w[p, q, c, o], (p, q, c))

    shape = (1, window.count, window.count, filters)
    y = te.compute(shape, of_channel if is_depthwise else of_all, name="y", attrs=layout_free(w))
    return [x, w, y]


def _padded(x: te.Tensor, window: Window) -> te.Tensor:
    pad, size = window.begin, window.extent

    def element(n: Expression, i: Expression, j: Expression, c: Expression) -> Expression:
        inside = te.logical_and(i >= pad, i < size + pad, j >= pad, j < size + pad)
        return te.if_then_else(inside, x[n, i - pad, j - pad, c], 0.0)

    return te.compute((1, size + 2 * pad, size + 2 * pad, x.shape[3]), element, name="padded")


def _blocked(workload: SearchWorkload) -> list[te.Tensor]:
    sizes, window = workload.sizes, workload.window
    lanes, taps = sizes["lanes"], sizes["taps"]
    blocks, filter_blocks = sizes["channels"] // lanes, sizes["made"] // lanes
    x = te.placeholder((1, blocks, window.extent, window.extent, lanes), name="x")
    if workload.kind == "blocked depthwise":
        w = _constant((blocks, taps, taps, lanes))
        return [x, w, depthwise_convolution(x, w, (window, window), "y")]
    w = _constant((filter_blocks, blocks, taps, taps, lanes, lanes))
    return [x, w, blocked_convolution(x, w, (window, window), "y")]


def _product(sizes: Mapping[str, int]) -> list[te.Tensor]:
    rows, columns, depth = (sizes[key] for key in ("rows", "columns", "depth"))
    x, w, k = te.placeholder((rows, depth), name="x"), _constant((depth, columns)), te.reduce_axis(depth, "k")
    y = te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * w[k, j], k), name="y", attrs=layout_free(w))
    return [x, w, y]


def _softmax(sizes: Mapping[str, int]) -> list[te.Tensor]:
    rows, width = sizes["rows"], sizes["width"]
    x, k, m = te.placeholder((rows, width), name="x"), te.reduce_axis(width, "k"), te.reduce_axis(width, "m")
    most = te.compute((rows,), lambda i: te.max(x[i, m], m), name="most")
    powers = te.compute((rows, width), lambda i, j: te.exp(x[i, j] - most[i]), name="powers")
    total = te.compute((rows,), lambda i: te.sum(powers[i, k], k), name="total")
    return [x, te.compute((rows, width), lambda i, j: powers[i, j] / total[i], name="y")]


def workloads(lanes: int) -> tuple[SearchWorkload, ...]:
    """Return all workloads for vectors of `lanes` floats."""
    resnet = {"size": 56, "taps": 3, "stride": 1, "pad": 1, "channels": 64, "made": 64}
    mobilenet = {"size": 28, "taps": 3, "stride": 1, "pad": 1, "channels": 192, "made": 192}
    return (
        SearchWorkload("convolution", "convolution", resnet),
        SearchWorkload("dense", "dense", {"rows": 128, "columns": 768, "depth": 3072}),
        SearchWorkload("depthwise", "depthwise", mobilenet),
        SearchWorkload("softmax", "softmax", {"rows": 1536, "width": 128}),
        SearchWorkload("blocked-convolution", "blocked convolution", {**resnet, "lanes": lanes}),
        SearchWorkload("blocked-depthwise", "blocked depthwise", {**mobilenet, "lanes": lanes}),
    )
