"""Matrix products as other operators: Gemm, and convolutions with kernels of one element."""

from __future__ import annotations

from intarsia.ir import Call, Expr
from intarsia.ir.pattern import is_constant, is_op, maybe
from intarsia.op import absent, call
from intarsia.passes.rules.tensor_facts import int_attr
from intarsia.tune.substitution.building import (
    called,
    constant_of,
    ints,
    is_absent,
    is_float,
    like,
    rank_of,
    shape_sizes,
    size_along,
    swapped,
)
from intarsia.tune.substitution.convolution import Convolution
from intarsia.tune.substitution.rule import A, B, C, substitution

_MATMUL = is_op("MatMul")


@substitution(is_op("Gemm")(A, B, maybe(C)))
def gemm_as_product(root: Call, a: Expr, b: Expr, c: Expr | None = None) -> Expr | None:
    """A Gemm as a product, with what it adds added behind.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(3, 4), float32], %c: Tensor[(3,), float32]) {
          Gemm(%a, %b, %c, transB=1)
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(3, 4), float32], %c: Tensor[(3,), float32]) {
          Add(MatMul(%a, Transpose(%b, perm=[1, 0])), %c)
        }
    """
    alpha, beta = root.attrs.get("alpha", 1.0), root.attrs.get("beta", 1.0)
    left = swapped(a) if int_attr(root.attrs, "transA", 0) else a
    right = swapped(b) if int_attr(root.attrs, "transB", 0) else b
    product: Expr = call("MatMul", left, right)
    if alpha != 1.0:
        assert isinstance(alpha, float)
        product = call("Mul", product, like(root, alpha))
    if c is None:
        return product
    if beta != 1.0:
        assert isinstance(beta, float)
        c = call("Mul", c, like(root, beta))
    return call("Add", product, c)


@substitution(is_op("Add").commutative(_MATMUL(A, B), C))
def product_as_gemm(root: Call, a: Expr, b: Expr, c: Expr) -> Expr | None:
    """`a b + c` of matrices as a Gemm.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, 3), float32], %c: Tensor[(3,), float32]) {
          Add(MatMul(%a, %b), %c)
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(4, 3), float32], %c: Tensor[(3,), float32]) {
          Gemm(%a, %b, %c)
        }
    """
    is_addend = 0 <= rank_of(c) <= 2 and (rank_of(c) < 2 or size_along(c, 0) == 1 or _is_shape_of(c, root))
    if rank_of(a) != 2 or rank_of(b) != 2 or not is_addend or not is_float(root):
        return None
    return call("Gemm", a, b, c)


def _is_shape_of(c: Expr, root: Call) -> bool:
    return c.checked_type == root.checked_type


@substitution(is_op("Gemm")(is_op("Transpose")(A), B, maybe(C)))
def gemm_of_transposed(root: Call, a: Expr, b: Expr, c: Expr | None = None) -> Expr | None:
    """A Gemm of a transposed matrix as a Gemm that transposes it.

    Before:
        def @main(%a: Tensor[(4, N), float32], %b: Tensor[(4, 3), float32]) {
          Gemm(Transpose(%a, perm=[1, 0]), %b)
        }
    After:
        def @main(%a: Tensor[(4, N), float32], %b: Tensor[(4, 3), float32]) { Gemm(%a, %b, transA=1) }
    """
    inner = root.args[0]
    if not isinstance(inner, Call) or inner.attrs.get("perm", (1, 0)) != (1, 0):
        return None
    attrs = dict(root.attrs)
    attrs["transA"] = 1 - int_attr(root.attrs, "transA", 0)
    return called("Gemm", attrs, a, b, absent() if c is None else c)


@substitution(is_op("Conv")(A, B, maybe(C)))
def pointwise_convolution_as_product(root: Call, a: Expr, b: Expr, c: Expr | None = None) -> Expr | None:
    """A convolution with a kernel of one element as a product of its weights with the pixels.

    Before:
        def @main(%a: Tensor[(2, 4, 3, 5), float32], %b: Tensor[(6, 4, 1, 1), float32]) { Conv(%a, %b) }
    After:
        def @main(%a: Tensor[(2, 4, 3, 5), float32], %b: Tensor[(6, 4, 1, 1), float32]) {
          %y = MatMul(Reshape(%b, meta[Constant][0]), Reshape(%a, meta[Constant][1]));
          Reshape(%y, meta[Constant][2])
        }
    Constants:
        [6, 4] [2, 4, 15] [2, 6, 3, 5]
    """
    convolution = Convolution.of(root)
    shape, out = shape_sizes(a), shape_sizes(root)
    if (
        convolution is None
        or not convolution.is_pointwise
        or shape is None
        or out is None
        or 0 in shape
        or 0 in out
    ):
        return None
    weights = call("Reshape", b, ints(out[1], shape[1]))
    count = 1
    for size in shape[2:]:
        count *= size
    product: Expr = call("MatMul", weights, call("Reshape", a, ints(shape[0], shape[1], count)))
    if c is not None and not is_absent(c):
        product = call("Add", product, call("Reshape", c, ints(out[1], 1)))
    return call("Reshape", product, ints(*out))


@substitution(_MATMUL(A, is_constant().named("b")))
def product_as_pointwise_convolution(a: Expr, b: Expr) -> Expr | None:
    """Rows times constant weights as a convolution with a kernel of one element.

    Before:
        def @main(%a: Tensor[(5, 3), float32]) { MatMul(%a, meta[Constant][0]) }
    After:
        def @main(%a: Tensor[(5, 3), float32]) {
          %x = Reshape(Transpose(%a, perm=[1, 0]), meta[Constant][1]);
          %y = Reshape(Conv(%x, meta[Constant][2]), meta[Constant][3]);
          Transpose(%y, perm=[1, 0])
        }
    Constants:
        [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]] [1, 3, 5, 1]
        [[[[1.0]], [[3.0]], [[5.0]]], [[[2.0]], [[4.0]], [[6.0]]]] [2, 5]
    """
    shape, weights = shape_sizes(a), constant_of(b)
    if (
        shape is None
        or weights is None
        or len(shape) != 2
        or weights.ndim != 2
        or not is_float(a)
        or 0 in shape
    ):
        return None
    if 0 in weights.shape:
        return None
    rows, inner = shape
    columns = weights.shape[1]
    kernel = like(b, weights.T.reshape(columns, inner, 1, 1))
    image = call("Reshape", swapped(a), ints(1, inner, rows, 1))
    return swapped(call("Reshape", call("Conv", image, kernel), ints(columns, rows)))
