"""Shapes of arguments that must fit each other, where onnx's inference does not look.

Kernels read and write by these shapes: an operator whose arguments do not fit would leave its tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from intarsia.ir import ABSENT, Attrs, TensorType, Type
from intarsia.support.errors import InvalidModelError

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of a call.

    Attributes:
        shapes: Static shapes; None where an argument is left out or its shape is not known.
        attrs: Attributes of the call.
    """

    shapes: Sequence[Shape | None]
    attrs: Attrs

    def shape(self, position: int) -> Shape | None:
        """The shape of an argument; None if it is not there or not known."""
        return self.shapes[position] if position < len(self.shapes) else None

    def integer(self, name: str, default: int) -> int:
        """An attribute that is an integer."""
        value = self.attrs.get(name, default)
        return value if isinstance(value, int) else default


def check_shapes(name: str, attrs: Attrs, types: Sequence[Type | None]) -> None:
    """Refuse arguments of ONNX's operators whose shapes do not fit each other.

    Args:
        name: Operator of the default domain.
        attrs: Attributes of the call.
        types: Types of the arguments.

    Raises:
        InvalidModelError: They do not fit.
    """
    rule = _RULES.get(name)
    if rule is None:
        return
    problem = rule(_Arguments([_static(item) for item in types], attrs))
    if problem is not None:
        shown = ", ".join(str(item) for item in types)
        raise InvalidModelError(f"operator {name!r} cannot be applied to ({shown}): {problem}")


def _static(type_: Type | None) -> Shape | None:
    is_known = type_ != ABSENT and isinstance(type_, TensorType) and type_.is_static
    return type_.static_shape if is_known and isinstance(type_, TensorType) else None


def _gather_elements(call: _Arguments) -> str | None:
    data, indices = call.shape(0), call.shape(1)
    if data is None or indices is None:
        return None
    return _within_others(data, indices, call.integer("axis", 0))


def _scatter_elements(call: _Arguments) -> str | None:
    data, indices, updates = (call.shape(position) for position in range(3))
    if indices is not None and updates is not None and indices != updates:
        return f"updates of shape {updates}, expected {indices} as the indices have"
    return None if data is None or indices is None else _within_others(data, indices, call.integer("axis", 0))


def _within_others(data: Shape, indices: Shape, axis: int) -> str | None:
    """Indices may have fewer places than the data along the other axes, not more."""
    if len(data) != len(indices):
        return f"indices of {len(indices)} dimensions, expected {len(data)}"
    axis = axis + len(data) if axis < 0 else axis
    pairs = enumerate(zip(data, indices, strict=True))
    if any(i > x for position, (x, i) in pairs if position != axis):
        return f"indices of shape {indices} reach beyond the data of shape {data}"
    return None


def _scatter_nd(call: _Arguments) -> str | None:
    data, indices, updates = (call.shape(position) for position in range(3))
    if data is None or indices is None or updates is None:
        return None
    if not indices or indices[-1] > len(data):
        return f"index tuples of shape {indices} into {len(data)} dimensions"
    expected = (*indices[:-1], *data[indices[-1] :])
    return None if updates == expected else f"updates of shape {updates}, expected {expected}"


def _gather_nd(call: _Arguments) -> str | None:
    data, indices, batch = call.shape(0), call.shape(1), call.integer("batch_dims", 0)
    if data is None or indices is None:
        return None
    if not indices or batch >= min(len(data), len(indices)) or batch + indices[-1] > len(data):
        return f"index tuples of shape {indices} into {len(data)} dimensions"
    if data[:batch] != indices[:batch]:
        return f"batches of shape {indices[:batch]}, expected {data[:batch]}"
    return None


def _reverse_sequence(call: _Arguments) -> str | None:
    data, lengths = call.shape(0), call.shape(1)
    if data is None or lengths is None:
        return None
    axis = call.integer("batch_axis", 1)
    if not -len(data) <= axis < len(data):
        return f"batch_axis={axis} of {len(data)} dimensions"
    count = data[axis]
    return None if lengths == (count,) else f"lengths of shape {lengths}, expected {(count,)}"


def _per_channel(first: int) -> Callable[[_Arguments], str | None]:
    """A rule for vectors with an element per channel, the second dimension of the first argument."""

    def rule(call: _Arguments) -> str | None:
        data = call.shape(0)
        if data is None or len(data) < 2:
            return None
        vectors = (call.shape(position) for position in range(first, len(call.shapes)))
        wrong = next((shape for shape in vectors if shape is not None and shape != (data[1],)), None)
        return None if wrong is None else f"a parameter of shape {wrong}, expected {(data[1],)}"

    return rule


def _normalized(call: _Arguments) -> str | None:
    """Scale and bias are broadcast to the data."""
    data = call.shape(0)
    for position in (1, 2):
        shape = call.shape(position)
        if data is None or shape is None:
            continue
        ends = data[len(data) - len(shape) :]
        if len(shape) > len(data) or any(a not in (1, b) for a, b in zip(shape, ends, strict=True)):
            return f"a parameter of shape {shape} cannot be broadcast to {data}"
    return None


def _convolution(filters: int, bias: int | None) -> Callable[[_Arguments], str | None]:
    """A rule for windows of the first argument.

    Args:
        filters: Position of the filters.
        bias: Position of the bias; None if there is none.
    """

    def rule(call: _Arguments) -> str | None:
        data, weight, groups = call.shape(0), call.shape(filters), call.integer("group", 1)
        if data is None or weight is None:
            return None
        if groups < 1 or len(data) != len(weight) or len(data) < 3:
            return f"filters of shape {weight} in {groups} groups"
        if weight[1] * groups != data[1] or weight[0] % groups:
            return f"filters of shape {weight} in {groups} groups do not fit {data[1]} channels"
        offsets = None if bias is None else call.shape(bias)
        is_wrong = offsets is not None and offsets != (weight[0],)
        return f"a bias of shape {offsets}, expected {(weight[0],)}" if is_wrong else None

    return rule


def _transposed_convolution(call: _Arguments) -> str | None:
    data, weight, bias, groups = call.shape(0), call.shape(1), call.shape(2), call.integer("group", 1)
    if data is None or weight is None:
        return None
    if groups < 1 or len(data) != len(weight) or len(data) < 3:
        return f"filters of shape {weight} in {groups} groups"
    if weight[0] != data[1] or weight[0] % groups:
        return f"filters of shape {weight} in {groups} groups do not fit {data[1]} channels"
    expected = (weight[1] * groups,)
    return f"a bias of shape {bias}, expected {expected}" if bias not in (None, expected) else None


def _suppression(call: _Arguments) -> str | None:
    boxes, scores = call.shape(0), call.shape(1)
    if boxes is None or scores is None:
        return None
    fits = len(boxes) == len(scores) == 3 and boxes[2] == 4
    if fits and (boxes[0], boxes[1]) == (scores[0], scores[2]):
        return None
    return "boxes are (batches, boxes, 4), and scores (batches, classes, boxes)"


def _rotary(call: _Arguments) -> str | None:
    data, cosines, sines, positions = (call.shape(position) for position in range(4))
    if data is None or cosines is None or sines is None:
        return None
    heads = call.integer("num_heads", 0)
    if len(data) not in (3, 4) or (len(data) == 3 and heads < 1):
        return None
    size = data[3] if len(data) == 4 else data[2] // heads
    width = (call.integer("rotary_embedding_dim", 0) or size) // 2
    if cosines != sines or cosines[-1:] != (width,):
        return f"tables of shapes {cosines} and {sines}, expected rows of {width}"
    steps = (data[0], data[-2])
    if len(cosines) == 3:
        return None if cosines[:2] == steps else f"tables of shape {cosines}, expected {(*steps, width)}"
    return f"positions of shape {positions}, expected {steps}" if positions not in (None, steps) else None


def _quantized(call: _Arguments) -> str | None:
    """One scale for all elements, for each index of an axis, or for each block of an axis."""
    data, scales = call.shape(0), call.shape(1)
    if data is None or scales is None or math.prod(scales) == 1:
        return None
    axis, block = call.integer("axis", 1), call.integer("block_size", 0)
    if not -len(data) <= axis < len(data) or block < 0:
        return f"axis={axis} and block_size={block} of {len(data)} dimensions"
    axis %= len(data)
    expected: Shape = data[axis : axis + 1]
    if block:
        expected = (*data[:axis], -(-data[axis] // block), *data[axis + 1 :])
    return None if scales == expected else f"scales of shape {scales}, expected {expected}"


def _integer_product(call: _Arguments) -> str | None:
    """One zero point for all elements, for each row of the first or for each column of the second matrix."""
    for position, axis in ((0, -2), (1, -1)):
        data, points = call.shape(position), call.shape(position + 2)
        if data is None or points is None or len(data) < 2 or math.prod(points) == 1:
            continue
        if math.prod(points) != data[axis]:
            return f"zero points of shape {points}, expected ({data[axis]},)"
    return None


def _einsum(call: _Arguments) -> str | None:
    """A letter stands for one extent."""
    equation = call.attrs.get("equation", "")
    extents: dict[str, int] = {}
    for position, term in enumerate(str(equation).replace(" ", "").split("->")[0].split(",")):
        shape = call.shape(position)
        if shape is None or "." in term or len(term) != len(shape):
            continue
        for letter, extent in zip(term, shape, strict=True):
            previous = extents.setdefault(letter, extent)
            if extent != previous and 1 not in (extent, previous):
                return f"the index {letter!r} has the extents {previous} and {extent}"
            extents[letter] = max(previous, extent)
    return None


def _attention(call: _Arguments) -> str | None:
    queries, keys, values = (_heads(call, position) for position in range(3))
    if queries is None or keys is None or values is None:
        return None
    if queries[3] != keys[3] or keys[:3] != values[:3] or queries[0] != keys[0]:
        return "queries, keys and values of batches, heads or sizes that do not fit each other"
    if keys[1] < 1 or queries[1] % keys[1]:
        return f"{queries[1]} heads of queries and {keys[1]} of keys"
    mask = call.shape(3) or ()
    rows = zip(mask[-2::-1], queries[2::-1], strict=False)
    return f"a mask of shape {mask}" if any(a not in (1, b) for a, b in rows) else None


def _heads(call: _Arguments, position: int) -> Shape | None:
    """The shape of an argument as (batch, heads, steps, size)."""
    shape = call.shape(position)
    if shape is None or len(shape) == 4:
        return shape
    heads = call.integer("kv_num_heads" if position else "q_num_heads", 0)
    return (shape[0], heads, shape[1], shape[2] // heads) if len(shape) == 3 and heads > 0 else None


def _quantized_convolution(call: _Arguments) -> str | None:
    """One scale and zero point for all filters, or for each."""
    weight = call.shape(3)
    for position in (4, 5):
        shape = call.shape(position)
        if weight and shape is not None and math.prod(shape) not in (1, weight[0]):
            return f"scales or zero points of shape {shape}, expected {weight[:1]}"
    return _convolution(3, 8)(call)


def _depth_to_space(call: _Arguments) -> str | None:
    data, block = call.shape(0), call.integer("blocksize", 1)
    is_wrong = data is not None and (block < 1 or len(data) != 4 or data[1] % block**2)
    return f"{data} cannot be divided into blocks of {block} by {block}" if is_wrong else None


_RULES: dict[str, Callable[[_Arguments], str | None]] = {
    "Attention": _attention,
    "Conv": _convolution(1, 2),
    "ConvInteger": _convolution(1, None),
    "ConvTranspose": _transposed_convolution,
    "DepthToSpace": _depth_to_space,
    "DequantizeLinear": _quantized,
    "Einsum": _einsum,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "GroupNormalization": _per_channel(1),
    "InstanceNormalization": _per_channel(1),
    "LayerNormalization": _normalized,
    "MatMulInteger": _integer_product,
    "NonMaxSuppression": _suppression,
    "QLinearConv": _quantized_convolution,
    "QuantizeLinear": _quantized,
    "RMSNormalization": _normalized,
    "ReverseSequence": _reverse_sequence,
    "RotaryEmbedding": _rotary,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
}
"""Operators whose arguments onnx's inference does not compare, or not in full."""
