"""The operator RotaryEmbedding, which ONNX took over with opset 23."""

from __future__ import annotations

from intarsia.frontend.onnx.contrib.attention_core import position_range
from intarsia.frontend.onnx.contrib.definition import ContribNode, NoDefinitionError, Results, definition
from intarsia.ir import DType, Expr


@definition(
    "RotaryEmbedding",
    inputs=(4, 4),
    interleaved=0,
    is_packed_batching=0,
    num_heads=0,
    rotary_embedding_dim=0,
    scale=1.0,
)
def rotary_embedding(node: ContribNode) -> Results:
    """Rotate pairs of elements by angles that grow with the position."""
    if node.integer("is_packed_batching") or node.number("scale") != 1.0:
        raise NoDefinitionError("packed batches, or a scale")
    x, positions = node.input(0), _positions(node)
    return [
        node.op(
            "RotaryEmbedding",
            x,
            node.input(2),
            node.input(3),
            positions,
            interleaved=node.integer("interleaved"),
            num_heads=_heads(node, x),
            rotary_embedding_dim=node.integer("rotary_embedding_dim"),
        )
    ]


def _positions(node: ContribNode) -> Expr:
    """Positions of shape [batch, step]; a single one is that of the first step."""
    positions, x = node.cast(node.input(1), DType.INT64), node.input(0)
    if node.rank(positions) == 2:
        return positions
    steps = node.size(x, 1 if node.rank(x) == 3 else 2)
    row = node.op("Add", position_range(node, steps), node.reshape(positions))
    return node.op("Expand", row, node.concat([node.size(x, 0), steps], 0))


def _heads(node: ContribNode, x: Expr) -> int:
    """The number of heads; by default it follows from the width of the tables."""
    heads = node.integer("num_heads")
    if heads or node.rank(x) == 4:
        return heads
    width, half = node.static(x, 2), node.static(node.input(2), 1)
    if width is None or half is None:
        raise NoDefinitionError("the number of heads is not known")
    return width // (2 * half)
