"""Calls that onnxruntime refuses, or fails on, as ONNX's backend tests show (docs/backend_tests.md).

Measured with onnxruntime 1.31.1 on the CPU. What it computes wrongly is left to the numeric gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from intarsia.ir import Call, DType, Op, TensorType
from intarsia.toolchain.call_facts import attribute_is, call_types, passes_packed_types

_NO_KERNEL = frozenset({"ImageDecoder", "Swish"})

_INTEGERS_OF_16_BITS = frozenset({DType.INT16, DType.UINT16})
_SIGNED = frozenset({DType.INT8, DType.INT16, DType.INT32, DType.INT64})
_FLOATS = frozenset({DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64})

_NO_KERNEL_FOR: Mapping[str, frozenset[DType]] = MappingProxyType(
    {
        "BitCast": frozenset({DType.BOOL}),
        "BitShift": _SIGNED | _INTEGERS_OF_16_BITS,
        "Celu": frozenset({DType.FLOAT16}),
        "Max": _INTEGERS_OF_16_BITS,
        "Min": _INTEGERS_OF_16_BITS,
        "Pow": frozenset({DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64}),
        "Range": frozenset({DType.FLOAT16}),
        "TopK": frozenset({DType.UINT64}),
    }
)


def onnxruntime_refuses(call: Call) -> bool:
    """Whether a call of an operator of ONNX's default domain is known not to work."""
    if not isinstance(call.op, Op) or call.op.domain:
        return False
    name, types = call.op.name, call_types(call)
    is_bfloat16 = DType.BFLOAT16 in types and name not in {"Cast", "CastLike"}
    special = _SPECIAL.get(name)
    return (
        name in _NO_KERNEL
        or is_bfloat16
        or not types.isdisjoint(_NO_KERNEL_FOR.get(name, frozenset()))
        or passes_packed_types(call)
        or (special is not None and special(call))
    )


def _is_batchwise(call: Call) -> bool:
    return attribute_is(call, "layout", 1)


def _is_floored_modulo_of_floats(call: Call) -> bool:
    return not attribute_is(call, "fmod", 1) and not call_types(call).isdisjoint(_FLOATS)


def _has_zero_point_per_channel(call: Call) -> bool:
    point = call.args[3].checked_type if len(call.args) > 3 else None
    return isinstance(point, TensorType) and point.shape not in ((), (1,))


_SPECIAL: Mapping[str, Callable[[Call], bool]] = MappingProxyType(
    {
        "ConvInteger": _has_zero_point_per_channel,
        "GRU": _is_batchwise,
        "LSTM": _is_batchwise,
        "Mod": _is_floored_modulo_of_floats,
        "RNN": _is_batchwise,
    }
)
