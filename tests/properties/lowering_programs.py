"""Small computations that are hard to lower, beside those of `native_workloads`."""

from collections.abc import Callable

from intarsia.ir import DType
from intarsia.ir.prim_func import Allocate, Arith, ArithOp, Block, Buffer, For, Literal, Load, LoopVar, Store
from intarsia.native import te

Tensors = tuple[te.Tensor, ...]


def strided_conv(size: int = 5, channels: int = 2, filters: int = 3) -> Tensors:
    """A convolution with stride 2 that chooses between data and zero in its sum."""
    data = te.placeholder((channels, size, size), name="data")
    weight = te.placeholder((filters, channels, 3, 3), name="weight")
    out = (size - 1) // 2 + 1
    c, y, x = te.reduce_axis(channels, "rc"), te.reduce_axis(3, "ry"), te.reduce_axis(3, "rx")

    def element(f: te.Expression, h: te.Expression, w: te.Expression) -> te.Reduction:
        row, column = h * 2 + y.expression - 1, w * 2 + x.expression - 1
        inside = te.logical_and(row >= 0, row < size, column >= 0, column < size)
        return te.sum(te.if_then_else(inside, data[c, row, column], 0.0) * weight[f, c, y, x], (c, y, x))

    return data, weight, te.compute((filters, out, out), element, "conv", ("f", "h", "w"))


def clipped_pool(size: int = 5) -> Tensors:
    """The largest of windows that reach over the border."""
    data = te.placeholder((2, size, size), name="data")
    y, x = te.reduce_axis(3, "ry"), te.reduce_axis(3, "rx")

    def element(c: te.Expression, h: te.Expression, w: te.Expression) -> te.Reduction:
        row, column = h * 2 + y.expression - 1, w * 2 + x.expression - 1
        inside = te.logical_and(row >= 0, row < size, column >= 0, column < size)
        return te.max(te.if_then_else(inside, data[c, row, column], te.lowest(DType.FLOAT32)), (y, x))

    return data, te.compute((2, 3, 3), element, name="pool")


def resized(n: int = 4) -> Tensors:
    """Quotients and remainders as indices, and reads of several places."""
    a = te.placeholder((n, n), name="A")
    twice = te.compute((n, n), lambda i, j: a[i, j] * 2.0, name="twice")
    big = te.compute((2 * n, 3 * n), lambda i, j: twice[i // 2, j // 3], name="big")
    flat = te.compute(
        (6 * n * n,), lambda i: big[i // (3 * n), i % (3 * n)] + big[i // (3 * n), 0], name="flat"
    )
    return a, te.compute((n, n), lambda i, j: flat[i * 5 + j * 2 + 1] - flat[i * 3], name="shifted")


def gathered(n: int = 4) -> Tensors:
    """An index that is read."""
    a, places = te.placeholder((n, n), name="A"), te.placeholder((n,), DType.INT64, "places")
    twice = te.compute((n, n), lambda i, j: a[i, j] * 2.0, name="twice")
    return a, places, te.compute((n, n), lambda i, j: twice[places[i] % n, j] + 1.0, name="gathered")


def running_sum(n: int = 5) -> Tensors:
    """A statement of its own between two operations."""
    a = te.placeholder((n,), name="A")
    twice = te.compute((n,), lambda i: a[i] * 2.0, name="twice")
    out, held, i = Buffer("sums", (n,), DType.FLOAT32), Buffer("held", (), DType.FLOAT32), LoopVar("i")
    step = Store(held, (), Arith(ArithOp.ADD, (Load(held, ()), Load(twice.buffer, (i,)))))
    start = Store(held, (), Literal(0.0, DType.FLOAT32))
    body = Allocate(held, Block((start, For(i, n, Block((step, Store(out, (i,), Load(held, ()))))))))
    (sums,) = te.extern((out,), (twice,), body, "sums")
    return a, te.compute((n,), lambda j: sums[j] + twice[j], name="result")


def nothing(n: int = 3) -> Tensors:
    """A sum of no values, and a tensor without elements."""
    a, b = te.placeholder((n, 0), name="A"), te.placeholder((0, n), name="B")
    k = te.reduce_axis(0, "k")
    empty = te.compute((0, n), lambda i, j: b[i, j] * 2.0, name="empty")
    return a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * empty[k, j], k), name="C")


HARD: dict[str, Callable[[], Tensors]] = {
    each.__name__: each for each in (strided_conv, clipped_pool, resized, gathered, running_sum, nothing)
}
"""All of these by name."""
