"""Matrix products with transpositions, factors and activations around them."""

from __future__ import annotations

from intarsia.frontend.onnx.contrib.activation import apply_named_activation
from intarsia.frontend.onnx.contrib.definition import ContribNode, Results, definition
from intarsia.ir import Expr


@definition(
    "FusedMatMul",
    "TransposeMatMul",
    inputs=(2, 2),
    alpha=1.0,
    transA=0,
    transB=0,
    transBatchA=0,
    transBatchB=0,
)
def fused_mat_mul(node: ContribNode) -> Results:
    """Alpha * A' B', where ' transposes the last two axes, or moves the first axis behind the batch."""
    a = _arranged(node, node.input(0), "A")
    b = _arranged(node, node.input(1), "B")
    product, alpha = node.op("MatMul", a, b), node.number("alpha")
    return [product if alpha == 1.0 else node.op("Mul", product, node.scalar(alpha, product))]


def _arranged(node: ContribNode, x: Expr, side: str) -> Expr:
    is_transposed, moves_batch = node.integer(f"trans{side}") != 0, node.integer(f"transBatch{side}") != 0
    if not is_transposed and not moves_batch:
        return x
    rank = node.rank(x)
    if rank < 2:
        return x
    order = [*range(1, rank - 1), 0, rank - 1] if moves_batch else list(range(rank))
    if is_transposed:
        order[-2:] = order[:-3:-1]
    return x if order == list(range(rank)) else node.transpose(x, *order)


@definition(
    "FusedGemm",
    inputs=(2, 3),
    alpha=1.0,
    beta=1.0,
    transA=0,
    transB=0,
    activation="",
    activation_alpha=None,
    activation_beta=None,
    activation_gamma=None,
)
def fused_gemm(node: ContribNode) -> Results:
    """An activation of alpha * A' B' + beta * C."""
    product = node.op(
        "Gemm",
        node.input(0),
        node.input(1),
        node.optional(2),
        alpha=node.number("alpha"),
        beta=node.number("beta"),
        transA=node.integer("transA"),
        transB=node.integer("transB"),
    )
    prefix = "activation_"
    parameters = {
        name.removeprefix(prefix): float(value)
        for name, value in node.attributes.items()
        if name.startswith(prefix) and value is not None
    }
    return [apply_named_activation(node, product, node.text("activation"), parameters)]
