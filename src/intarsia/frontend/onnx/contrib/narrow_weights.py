"""The operator MatMulNBits: products with weights of few bits, each block of them with its own scale."""

from __future__ import annotations

import numpy as np

from intarsia.frontend.onnx.contrib.contrib_node import Array, array_of, dtype_of
from intarsia.frontend.onnx.contrib.definition import (
    REQUIRED,
    ContribNode,
    NoDefinitionError,
    Results,
    definition,
)
from intarsia.ir import DType
from intarsia.support.errors import InvalidModelError

_STORAGE = {2: DType.UINT8, 4: DType.UINT4, 8: DType.UINT8}
"""Element types of weights by their bits."""


@definition(
    "MatMulNBits",
    inputs=(3, 6),
    K=REQUIRED,
    N=REQUIRED,
    block_size=REQUIRED,
    bits=4,
    accuracy_level=0,
    weight_prepacked=0,
)
def mat_mul_n_bits(node: ContribNode) -> Results:
    """MatMul with the dequantised weights: DequantizeLinear by blocks.

    The accuracy level lets onnxruntime round the other operand to fewer bits; here it is left exact.
    """
    bits = node.integer("bits")
    if bits not in _STORAGE or node.integer("weight_prepacked") or node.has(4):
        raise NoDefinitionError(f"weights of {bits} bits, packed for a processor, or reordered")
    weights = node.op(
        "DequantizeLinear",
        node.constant(_weights(node, bits)),
        node.constant(_scales(node)),
        node.constant(_zero_points(node, bits)),
        axis=0,
        block_size=node.integer("block_size"),
    )
    product, bias = node.op("MatMul", node.input(0), weights), node.optional(5)
    return [product if bias is None else node.op("Add", product, bias)]


def _blocks(node: ContribNode) -> int:
    return -(-node.integer("K") // node.integer("block_size"))


def _given(node: ContribNode, position: int, elements: int) -> Array:
    """A constant input of so many elements."""
    array = array_of(node.input(position))
    if array is None:
        raise NoDefinitionError("weights that are computed")
    if array.size != elements:
        raise InvalidModelError(
            f"operator 'MatMulNBits' has an input {position} of {array.size} elements, expected {elements}"
        )
    return array


def _weights(node: ContribNode, bits: int) -> Array:
    """The weights, of shape [K, N]."""
    rows, blocks, block = node.integer("N"), _blocks(node), node.integer("block_size")
    packed = _given(node, 1, rows * blocks * block * bits // 8).reshape(rows, -1)
    values = _unpacked(packed, bits)[:, : node.integer("K")]
    return np.ascontiguousarray(values.T).astype(_STORAGE[bits].numpy)


def _scales(node: ContribNode) -> Array:
    """The scales, of shape [blocks, N]."""
    rows, blocks = node.integer("N"), _blocks(node)
    return np.ascontiguousarray(_given(node, 2, rows * blocks).reshape(rows, blocks).T)


def _zero_points(node: ContribNode, bits: int) -> Array:
    """The zero points, of shape [blocks, N]; by default the middle of the range."""
    rows, blocks = node.integer("N"), _blocks(node)
    if not node.has(3):
        return np.full((blocks, rows), 2 ** (bits - 1)).astype(_STORAGE[bits].numpy)
    if dtype_of(node.input(3)) is not DType.UINT8:
        raise NoDefinitionError("zero points that are no integers")
    width = -(-blocks * bits // 8)
    packed = _given(node, 3, rows * width).reshape(rows, width)
    return np.ascontiguousarray(_unpacked(packed, bits)[:, :blocks].T).astype(_STORAGE[bits].numpy)


def _unpacked(packed: Array, bits: int) -> Array:
    """The integers of each row, the lowest bits of a byte first."""
    if bits == 8:
        return packed
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (packed[:, :, None] >> shifts) & np.uint8((1 << bits) - 1)
    return parts.reshape(len(packed), -1)
