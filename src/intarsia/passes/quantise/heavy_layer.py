"""Convolutions and matrix products with constant weights: the layers that quantisation makes faster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, Constant, DType, Expr, If, Op, TensorType, post_order
from intarsia.ir.expr import Function
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.simulated_quantize_op import SIMULATED_QUANTIZE

_MATRIX: Final = 2
"""Rank of the weights of Gemm and MatMul that are quantised."""

_CONVOLUTIONS: Final = ("Conv", "ConvTranspose")


@dataclass(frozen=True, slots=True, eq=False)
class HeavyLayer:
    """A convolution or matrix product of float32 with constant weights.

    Attributes:
        number: Position among the heavy layers of the function, from 0, in an executable order.
        call: The call; its arguments are the input, the weights, and a bias if there is one.
        weight: The weights.
        weight_axis: Axis of the weights that counts output channels.
    """

    number: int
    call: Call
    weight: Constant
    weight_axis: int

    @property
    def operator(self) -> str:
        """Name of the operator: Conv, ConvTranspose, Gemm or MatMul."""
        assert isinstance(self.call.op, Op)
        return self.call.op.name

    @property
    def is_convolution(self) -> bool:
        """Whether it is a convolution, transposed or not, whose channels stand along axis 1."""
        return self.operator in _CONVOLUTIONS

    @property
    def bias(self) -> Constant | None:
        """The constant bias of one value for each output channel; None without one."""
        value = self.call.args[2] if len(self.call.args) > 2 else None
        outputs = self.weight.data.shape[self.weight_axis]
        if not isinstance(value, Constant):
            return None
        is_row = value.data.size == outputs and value.data.shape[-1:] == (outputs,)
        return value if is_row else None

    @property
    def input_axis(self) -> int:
        """Axis of the input that counts input channels, negative."""
        rank = self.weight.data.ndim
        return 1 - rank if self.is_convolution else -1

    @property
    def input_channels(self) -> int:
        """Number of input channels, of all groups."""
        group = self.call.attrs.get("group", 1)
        assert isinstance(group, int)
        return int(self.weight.data.shape[1 - self.weight_axis]) * group

    @property
    def name(self) -> str:
        """Name of the node in the model, or the operator and its number."""
        node = self.call.span.node if self.call.span is not None else ""
        return node or f"{self.operator} {self.number}"


def top_level(body: Expr) -> Iterator[Expr]:
    """Yield the expressions of a body, each after its children, outside of branches and inner functions."""
    inner = {node for node in post_order(body) if isinstance(node, Function | If)}
    return post_order(body, stop=inner)


def heavy_layers(
    nodes: Iterable[Expr], dtypes: Collection[DType] = (DType.FLOAT32,)
) -> tuple[HeavyLayer, ...]:
    """Return the heavy layers among expressions in an executable order, annotated ones included.

    Args:
        nodes: The expressions.
        dtypes: Element types of the layers; those that a pass has lowered still count with their type.
    """
    layers: list[HeavyLayer] = []
    for node in nodes:
        layer = _heavy_layer(node, len(layers), dtypes)
        if layer is not None:
            layers.append(layer)
    return tuple(layers)


def layer_of(node: Expr) -> HeavyLayer | None:
    """Return an expression as a heavy layer, with the number 0; None if it is none."""
    return _heavy_layer(node, 0, (DType.FLOAT32,))


def _heavy_layer(node: Expr, number: int, dtypes: Collection[DType]) -> HeavyLayer | None:
    if not isinstance(node, Call) or not isinstance(node.op, Op) or node.op.domain or len(node.args) < 2:
        return None
    weight = annotated_value(node.args[1])
    if not isinstance(weight, Constant) or not _is_of(weight, dtypes) or not weight.data.size:
        return None
    if isinstance(annotated_value(node.args[0]), Constant | If) or not _is_of(node.args[0], dtypes):
        return None
    has_pads = node.attrs.get("auto_pad", "NOTSET") in ("", "NOTSET")
    match node.op.name:
        case "Conv" if has_pads:
            return HeavyLayer(number, node, weight, 0)
        # With groups, one index along the axis of the weights stands for a channel of each group.
        case "ConvTranspose" if has_pads and node.attrs.get("group", 1) == 1:
            return HeavyLayer(number, node, weight, 1)
        case "MatMul" if weight.data.ndim == _MATRIX:
            return HeavyLayer(number, node, weight, 1)
        case "Gemm" if _is_plain(node):
            return HeavyLayer(number, node, weight, 0 if node.attrs.get("transB", 0) else 1)
        case _:
            return None


def _is_plain(gemm: Call) -> bool:
    """Whether a Gemm multiplies and adds only."""
    factors = (gemm.attrs.get("alpha", 1.0), gemm.attrs.get("beta", 1.0))
    return factors == (1.0, 1.0) and not gemm.attrs.get("transA", 0)


def annotated_value(value: Expr) -> Expr:
    """Return the value below an annotation; other values as they are."""
    return value.args[0] if is_annotation(value) and isinstance(value, Call) else value


def is_annotation(value: Expr) -> bool:
    """Whether a value is a call of intarsia::simulated_quantize."""
    if not isinstance(value, Call) or not isinstance(value.op, Op):
        return False
    return (value.op.name, value.op.domain) == (SIMULATED_QUANTIZE, INTARSIA_DOMAIN)


def is_float32(value: Expr) -> bool:
    """Whether a value is a tensor of float32."""
    return _is_of(value, (DType.FLOAT32,))


def _is_of(value: Expr, dtypes: Collection[DType]) -> bool:
    return isinstance(value.checked_type, TensorType) and value.checked_type.dtype in dtypes
