"""The operator: its types, its kernel, and the NumPy function that defines it.

The entry point `intarsia.operators` in pyproject.toml names this module; importing it registers the operator.
"""

from __future__ import annotations

import numpy as np

import intarsia as ia
from intarsia.ir import DType, TensorType
from intarsia.native import te

from .packing import PER_BYTE, Array, unpack


def mlp_type(
    x: TensorType,
    gate: TensorType,
    gate_scale: TensorType,
    up: TensorType,
    up_scale: TensorType,
    down: TensorType,
    down_scale: TensorType,
) -> TensorType:
    """Return the type of x, if the weights fit.

    Raises:
        ValueError: They do not.
    """
    del gate_scale, up_scale, down_scale
    if any(item.dtype is not DType.UINT8 for item in (gate, up, down)):
        raise ValueError("packed weights are uint8")
    if x.shape is None or gate.shape is None or gate.shape != up.shape or down.shape is None:
        raise ValueError("gate and up have one shape")
    if x.shape[-1] != gate.static_shape[0] * PER_BYTE or x.shape[-1] != down.shape[1]:
        raise ValueError(f"x has {x.shape[-1]} columns, the weights {gate.static_shape[0] * PER_BYTE}")
    return x


def mlp_kernel(
    x: te.Tensor,
    gate: te.Tensor,
    gate_scale: te.Tensor,
    up: te.Tensor,
    up_scale: te.Tensor,
    down: te.Tensor,
    down_scale: te.Tensor,
) -> te.Tensor:
    """Declare three products with packed weights, which are unpacked in registers."""
    rows, columns = x.shape
    gated, upward, x_sum = product(x, gate, "gate_sum"), product(x, up, "up_sum"), row_sums(x, "x_sum")

    def element(i: te.Expression, j: te.Expression) -> te.Expression:
        value = (gated[i, j] - x_sum[i]) * gate_scale[j]
        return value / (1.0 + te.exp(-value)) * ((upward[i, j] - x_sum[i]) * up_scale[j])

    hidden = te.compute((rows, gate.shape[1]), element, name="hidden")
    downward, hidden_sum = product(hidden, down, "down_sum"), row_sums(hidden, "hidden_sum")
    return te.compute(
        (rows, columns), lambda i, j: (downward[i, j] - hidden_sum[i]) * down_scale[j], name="scaled"
    )


def product(x: te.Tensor, packed: te.Tensor, name: str) -> te.Tensor:
    """Declare x @ (unpack(packed) + 1): a step of the sum reads one byte for four weights.

    A weight is its code - 1, so that what is too much is the sum of the row of x, for all columns.
    """
    k = te.reduce_axis(packed.shape[0], "k")

    def element(i: te.Expression, j: te.Expression) -> te.Reduction:
        byte = packed[k, j].astype(DType.INT32)
        # A code is left where it is in the byte, 4**number times as large; x is scaled back in its place,
        # once for all columns and without a rounding error.
        terms = [
            x[i, k * PER_BYTE + number] * 0.25**number * code(byte, number) for number in range(PER_BYTE)
        ]
        return te.sum(terms[0] + terms[1] + terms[2] + terms[3], axis=k)

    return te.compute((x.shape[0], packed.shape[1]), element, name=name)


def code(byte: te.Expression, number: int) -> te.Expression:
    """Return 4**number times one of the four codes in a byte, a float32."""
    mask = te.const(3 << (2 * number), DType.INT32)
    return te.call("bit_and", byte, mask).astype(DType.FLOAT32)


def row_sums(x: te.Tensor, name: str) -> te.Tensor:
    """Declare the sum of each row."""
    k = te.reduce_axis(x.shape[1], "k")
    return te.compute((x.shape[0],), lambda i: te.sum(x[i, k], axis=k), name=name)


@ia.operator("acme::TernaryGatedMLP", compute=mlp_kernel, infer=mlp_type, batched=True)
def ternary_gated_mlp(
    x: Array, gate: Array, gate_scale: Array, up: Array, up_scale: Array, down: Array, down_scale: Array
) -> Array:
    """Compute silu(x gate) * (x up) down, with ternary weights and a scale for each column.

    Args:
        x: Rows [n, d], float32.
        gate: Packed weights [d / 4, h].
        gate_scale: Scales [h].
        up: Packed weights [d / 4, h].
        up_scale: Scales [h].
        down: Packed weights [h / 4, d].
        down_scale: Scales [d].
    """
    wide = x.astype(np.float64)
    value = wide @ unpack(gate) * gate_scale
    hidden = value / (1 + np.exp(-value)) * (wide @ unpack(up) * up_scale)
    result: Array = hidden @ unpack(down) * down_scale
    return result
