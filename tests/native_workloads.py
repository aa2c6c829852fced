"""Computations to schedule: the field's usual ones, as tensor expressions."""

import math
from collections.abc import Callable, Sequence

from intarsia.ir import DType
from intarsia.native import te

Tensors = tuple[te.Tensor, ...]


def matmul(n: int = 8, m: int = 8, k: int = 8) -> Tensors:
    """A (n, k) times B (k, m), whose layout is free."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    return a, b, _product(a, b, "C", "k", attrs={"layout_free_placeholders": ("B",)})


def _product(
    a: te.Tensor, b: te.Tensor, name: str, axis: str, attrs: dict[str, tuple[str, ...]] | None = None
) -> te.Tensor:
    k = te.reduce_axis(a.shape[1], axis)
    shape = a.shape[0], b.shape[1]
    return te.compute(
        shape, lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name=name, attrs=dict(attrs or {})
    )


def double_matmul(n: int = 8) -> Tensors:
    """(A times B) times D."""
    a, b, d = (te.placeholder((n, n), name=name) for name in "ABD")
    c = _product(a, b, "C", "k")
    return a, b, d, _product(c, d, "E", "k")


def parallel_matmul(n: int = 8) -> Tensors:
    """A times B, and A times C."""
    a, b, c = (te.placeholder((n, n), name=name) for name in "ABC")
    return a, b, c, _product(a, b, "D", "k"), _product(a, c, "E", "k")


def conv2d_nchw_bn_relu(
    n: int = 1,
    height: int = 6,
    width: int = 6,
    ci: int = 3,
    co: int = 4,
    kernel_size: int = 3,
    strides: int = 1,
    padding: int = 1,
    dilation: int = 1,
) -> Tensors:
    """Convolution, bias, batch normalisation, relu."""
    data = te.placeholder((n, ci, height, width), name="data")
    kernel = te.placeholder((co, ci, kernel_size, kernel_size), name="kernel")
    bias, scale, offset = (
        te.placeholder((co, 1, 1), name=name) for name in ("bias", "bn_scale", "bn_offset")
    )
    reach = (kernel_size - 1) * dilation + 1
    oh, ow = ((size + 2 * padding - reach) // strides + 1 for size in (height, width))
    padded = _padded(data, padding)
    rc, ry, rx = (
        te.reduce_axis(extent, name)
        for name, extent in (("rc", ci), ("ry", kernel_size), ("rx", kernel_size))
    )

    def window(nn: te.Expression, ff: te.Expression, yy: te.Expression, xx: te.Expression) -> te.Reduction:
        y, x = yy * strides + ry.expression * dilation, xx * strides + rx.expression * dilation
        return te.sum(padded[nn, rc, y, x] * kernel[ff, rc, ry, rx], axis=[rc, ry, rx])

    shape, names = (n, co, oh, ow), ("nn", "ff", "yy", "xx")
    conv = te.compute(shape, window, name="conv", axis_names=names)
    zero = te.const(0.0)
    add = te.compute(shape, lambda i, j, k, m: conv[i, j, k, m] + bias[j, 0, 0], name="bias_add")
    mul = te.compute(shape, lambda i, j, k, m: add[i, j, k, m] * scale[j, 0, 0], name="bn_mul")
    shifted = te.compute(shape, lambda i, j, k, m: mul[i, j, k, m] + offset[j, 0, 0], name="bn_add")
    out = te.compute(shape, lambda i, j, k, m: te.maximum(shifted[i, j, k, m], zero), name="relu")
    return data, kernel, bias, offset, scale, out


def _padded(data: te.Tensor, padding: int) -> te.Tensor:
    n, c, height, width = data.shape

    def element(i: te.Expression, j: te.Expression, k: te.Expression, m: te.Expression) -> te.Expression:
        is_inside = te.logical_and(*(k >= padding, k < height + padding, m >= padding, m < width + padding))
        return te.if_then_else(is_inside, data[i, j, k - padding, m - padding], 0.0)

    return te.compute((n, c, height + 2 * padding, width + 2 * padding), element, name="padding")


def max_pool2d(n: int = 1, height: int = 6, width: int = 6, ci: int = 3, padding: int = 1) -> Tensors:
    """Windows of 2 by 2, one apart."""
    data = te.placeholder((n, ci, height, width), name="data")
    padded = _padded(data, padding)
    dy, dx = te.reduce_axis(2, "dy"), te.reduce_axis(2, "dx")
    shape = (n, ci, height + 2 * padding - 1, width + 2 * padding - 1)
    out = te.compute(
        shape,
        lambda i, j, k, m: te.max(padded[i, j, k + dy.expression, m + dx.expression], axis=[dy, dx]),
        name="max_pool",
    )
    return data, out


def min_nm(n: int = 6, m: int = 10) -> Tensors:
    """The least of each row."""
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis(m, "k")
    return a, te.compute((n,), lambda i: te.min(a[i, k], axis=k), name="B")


def softmax_nm(n: int = 5, m: int = 7) -> Tensors:
    """Softmax of each row."""
    return _softmax((n, m))


def softmax_abcd(a: int = 2, b: int = 2, c: int = 3, d: int = 5) -> Tensors:
    """Softmax over the last of four axes."""
    return _softmax((a, b, c, d))


def _softmax(shape: tuple[int, ...]) -> Tensors:
    a = te.placeholder(shape, name="A")
    k, last = te.reduce_axis(shape[-1], "r"), shape[:-1]
    largest = te.compute(last, lambda *i: te.max(a[(*i, k)], axis=k), name="maxelem")
    powers = te.compute(shape, lambda *i: te.exp(a[i] - largest[i[:-1]]), name="exp")
    total = te.compute(last, lambda *i: te.sum(powers[(*i, k)], axis=k), name="expsum")
    return a, te.compute(shape, lambda *i: powers[i] / total[i[:-1]], name="norm")


def invalid_compute_definition() -> Tensors:
    """Two axes of one operation are the loop `i_0`, as names of loops have no dots."""
    a = te.placeholder((4, 4), name="A")
    return a, te.compute((4, 4), lambda i, j: a[i, j] + 1.0, name="B", axis_names=("i.0", "i_0"))


def zero_rank_reduce(n: int = 12) -> Tensors:
    """The sum of a vector, without axes."""
    a = te.placeholder((n,), name="A")
    k = te.reduce_axis(n, "k")
    return a, te.compute((), lambda: te.sum(a[k], axis=k), name="B")


def zero_rank_compute(n: int = 12) -> Tensors:
    """One more than the sum of a vector."""
    a, b = zero_rank_reduce(n)
    return a, te.compute((), lambda: b[()] + 1.0, name="C")


INPUT_TRANSFORM = (
    *((4, 0, 0, 0, 0, 0), (0, -4, 4, -2, 2, 4), (-5, -4, -4, -1, -1, 0)),
    *((0, 1, -1, 2, -2, -5), (1, 1, 1, 1, 1, 0), (0, 0, 0, 0, 0, 1)),
)
"""Winograd F(4, 3): how a row of 6 inputs is transformed; the column is the result."""
OUTPUT_TRANSFORM = (
    *((1, 0, 0, 0), (1, 1, 1, 1), (1, -1, 1, -1), (1, 2, 4, 8), (1, -2, 4, -8), (0, 0, 0, 1)),
)
"""Winograd F(4, 3): how 6 products become 4 results."""


def conv2d_winograd_nhwc(n: int = 1, height: int = 8, width: int = 8, ci: int = 3, co: int = 2) -> Tensors:
    """Convolution of 3 by 3, stride 1, padding 1, in tiles of 4 by 4; the kernel is transformed before."""
    tile, alpha = 4, 6
    rows, columns = -(-height // tile), -(-width // tile)
    count = n * rows * columns
    inputs = te.placeholder((n, height, width, ci), name="inputs")
    kernel = te.placeholder((alpha, alpha, co, ci), name="kernel_pack")
    windows = _winograd_windows(inputs, rows, columns)
    b, a = _const_matrix(INPUT_TRANSFORM, "B"), _const_matrix(OUTPUT_TRANSFORM, "A")
    ra, rb = te.reduce_axis(alpha, "r_a"), te.reduce_axis(alpha, "r_b")
    simplify = "auto_scheduler_simplify_const_tensor_indices"
    packed = te.compute(
        (alpha, alpha, count, ci),
        lambda eps, nu, p, c: te.sum(windows[ra, rb, p, c] * b[ra, eps] * b[rb, nu], axis=[ra, rb]),
        name="data_pack",
        axis_names=("eps", "nu", "p", "ci"),
        attrs={simplify: ("eps", "nu", "r_a", "r_b")},
    )
    rc = te.reduce_axis(ci, "ci")
    products = te.compute(
        (alpha, alpha, count, co),
        lambda eps, nu, p, f: te.sum(packed[eps, nu, p, rc] * kernel[eps, nu, f, rc], axis=rc),
        name="bgemm",
        axis_names=("eps", "nu", "p", "co"),
    )
    inverse = te.compute(
        (tile, tile, count, co),
        lambda vh, vw, p, f: te.sum(products[ra, rb, p, f] * a[ra, vh] * a[rb, vw], axis=[ra, rb]),
        name="inverse",
        axis_names=("vh", "vw", "p", "co"),
        attrs={simplify: ("vh", "vw", "r_a", "r_b")},
    )

    def element(i: te.Expression, h: te.Expression, w: te.Expression, f: te.Expression) -> te.Expression:
        place = i * (rows * columns) + h // tile * columns + w // tile
        return inverse[h % tile, w % tile, place, f]

    out = te.compute(
        (n, height, width, co), element, name="conv2d_winograd", axis_names=("n", "h", "w", "co")
    )
    return inputs, kernel, out


def _winograd_windows(inputs: te.Tensor, rows: int, columns: int) -> te.Tensor:
    n, height, width, channels = inputs.shape

    def element(eps: te.Expression, nu: te.Expression, p: te.Expression, c: te.Expression) -> te.Expression:
        y = p // columns % rows * 4 + eps - 1
        x = p % columns * 4 + nu - 1
        is_inside = te.logical_and(y >= 0, y < height, x >= 0, x < width)
        return te.if_then_else(is_inside, inputs[p // (rows * columns), y, x, c], 0.0)

    shape = (6, 6, n * rows * columns, channels)
    return te.compute(shape, element, name="input_tile", axis_names=("eps", "nu", "p", "ci"))


def _const_matrix(rows: Sequence[Sequence[int]], name: str) -> te.Tensor:
    """A tensor of numbers, as choices by index; it reads nothing."""

    def element(i: te.Expression, j: te.Expression) -> te.Expression:
        found = te.const(0.0)
        for y, row in enumerate(rows):
            for x, value in enumerate(row):
                if value:
                    found = te.select(te.logical_and(te.equal(i, y), te.equal(j, x)), float(value), found)
        return found

    return te.compute((len(rows), len(rows[0])), element, name=name)


def depthwise_conv2d(channels: int = 4, size: int = 7, strides: int = 2) -> Tensors:
    """Each channel with a window of 3 by 3 of its own, without padding."""
    data = te.placeholder((1, channels, size, size), name="data")
    kernel = te.placeholder((channels, 3, 3), name="kernel")
    ry, rx = te.reduce_axis(3, "ry"), te.reduce_axis(3, "rx")
    out = (size - 3) // strides + 1
    result = te.compute(
        (1, channels, out, out),
        lambda i, c, y, x: te.sum(
            data[i, c, y * strides + ry.expression, x * strides + rx.expression] * kernel[c, ry, rx],
            axis=[ry, rx],
        ),
        name="depthwise",
    )
    return data, kernel, result


def layer_norm(n: int = 4, m: int = 6) -> Tensors:
    """Rows with mean 0 and variance 1, scaled and shifted."""
    x = te.placeholder((n, m), name="X")
    scale, shift = te.placeholder((m,), name="scale"), te.placeholder((m,), name="shift")
    k = te.reduce_axis(m, "k")
    total = te.compute((n,), lambda i: te.sum(x[i, k], axis=k), name="sum")
    centred = te.compute((n, m), lambda i, j: x[i, j] - total[i] / m, name="centred")
    squares = te.compute((n,), lambda i: te.sum(centred[i, k] * centred[i, k], axis=k), name="squares")

    def element(i: te.Expression, j: te.Expression) -> te.Expression:
        return centred[i, j] / te.sqrt(squares[i] / m + 1e-5) * scale[j] + shift[j]

    return x, scale, shift, te.compute((n, m), element, name="layer_norm")


def argmax_nm(n: int = 5, m: int = 7) -> Tensors:
    """Where the largest of each row is, first of equals, and the largest: an operation with two results."""
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis(m, "k")

    def larger(lhs: Sequence[te.Expression], rhs: Sequence[te.Expression]) -> Sequence[te.Expression]:
        is_left = te.logical_or(lhs[1] > rhs[1], te.logical_and(te.equal(lhs[1], rhs[1]), lhs[0] <= rhs[0]))
        return te.select(is_left, lhs[0], rhs[0]), te.maximum(lhs[1], rhs[1])

    neutral = [(te.highest(DType.INT64), DType.INT64), (-math.inf, DType.FLOAT32)]
    combiner = te.Combiner.of("argmax", neutral, larger)
    results = te.compute_many(
        (n,), lambda i: te.reduce(combiner, (k.expression, a[i, k]), axis=k), name="argmax"
    )
    return a, *results


WORKLOADS: dict[str, Callable[[], Tensors]] = {
    each.__name__: each
    for each in (
        *(matmul, double_matmul, parallel_matmul, conv2d_nchw_bn_relu, max_pool2d, min_nm),
        *(softmax_nm, softmax_abcd, zero_rank_reduce, zero_rank_compute, conv2d_winograd_nhwc),
        *(depthwise_conv2d, layer_norm, argmax_nm),
    )
}
"""Every valid computation of this file by name, small enough to be interpreted."""
