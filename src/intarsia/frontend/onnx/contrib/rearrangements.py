"""Operators that ONNX took over later, and small ones that it expresses easily."""

from __future__ import annotations

from intarsia.frontend.onnx.contrib.contrib_node import shape_of
from intarsia.frontend.onnx.contrib.definition import ContribNode, NoDefinitionError, Results, definition
from intarsia.ir import DType


@definition("Trilu", inputs=(1, 2), upper=1)
def trilu(node: ContribNode) -> Results:
    """The upper or lower triangle."""
    return [node.op("Trilu", node.input(0), node.optional(1), upper=node.integer("upper"))]


@definition("GatherND", inputs=(2, 2))
def gather_nd(node: ContribNode) -> Results:
    """GatherND with int64 indices."""
    return [node.op("GatherND", node.input(0), node.cast(node.input(1), DType.INT64))]


@definition("ExpandDims", inputs=(2, 2))
def expand_dims(node: ContribNode) -> Results:
    """Unsqueeze of one axis."""
    return [node.op("Unsqueeze", node.input(0), node.reshape(node.cast(node.input(1), DType.INT64), 1))]


@definition("Range", inputs=(2, 3))
def range_(node: ContribNode) -> Results:
    """Range with a step of 1 by default, of scalars that may be tensors of one element."""
    start = node.input(0)
    step = node.optional(2) or node.scalar(1, start)
    return [
        node.op("Range", *(node.reshape(x) if shape_of(x) != () else x for x in (start, node.input(1), step)))
    ]


@definition("Pad", inputs=(2, 3), mode="constant")
def pad(node: ContribNode) -> Results:
    """Pad; the pads may have a leading axis of 1, and negative pads crop."""
    pads, value = node.reshape(node.input(1), -1), node.optional(2)
    value = None if value is None else node.reshape(value)
    return [node.op("Pad", node.input(0), pads, value, mode=node.text("mode"))]


@definition("Unique", inputs=(1, 1))
def unique(node: ContribNode) -> Results:
    """Unique values in the order of their first occurrence, where each input stands among them, counts."""
    values, _, inverse, counts = node.ops("Unique", 4, node.input(0), sorted=0)
    return [values, inverse, counts][: len(node.outputs)]


@definition("CDist", inputs=(2, 2), metric="sqeuclidean")
def cdist(node: ContribNode) -> Results:
    """Distances of all rows of A to all rows of B, by |a|^2 - 2ab + |b|^2 as onnxruntime computes them."""
    a, b = node.input(0), node.input(1)
    if node.text("metric") not in ("sqeuclidean", "euclidean"):
        raise NoDefinitionError(f"the metric {node.text('metric')!r}")
    last = node.ints(1)
    a_norms = node.op("ReduceSumSquare", a, last)
    b_norms = node.swapped(node.op("ReduceSumSquare", b, last))
    products = node.op("MatMul", a, node.swapped(b))
    twice = node.op("Mul", products, node.scalar(2, products))
    squares = node.op("Sub", node.op("Add", a_norms, b_norms), twice)
    squares = node.op("Max", squares, node.scalar(0, squares))
    return [node.op("Sqrt", squares) if node.text("metric") == "euclidean" else squares]


@definition("UnfoldTensor", inputs=(1, 1), dim=-1, size=None, step=1)
def unfold_tensor(node: ContribNode) -> Results:
    """Windows of an axis, each as a new last axis: a Gather of their indices."""
    x = node.input(0)
    axis = node.integer("dim") % node.rank(x)
    length, size, step = node.static(x, axis), node.attributes["size"], node.integer("step")
    if length is None or size is None or not 1 <= size <= length or step < 1:
        raise NoDefinitionError("the windows of the axis are not known")
    starts = range(0, length - size + 1, step)
    indices = node.ints(*(start + offset for start in starts for offset in range(size)))
    gathered = node.op("Gather", x, node.reshape(indices, len(starts), size), axis=axis)
    rank = node.rank(gathered)
    order = [position for position in range(rank) if position != axis + 1]
    return [node.transpose(gathered, *order, axis + 1)]
