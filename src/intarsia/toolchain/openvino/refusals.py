"""Calls that OpenVINO refuses, or computes wrong, as ONNX's backend tests show (docs/backend_tests.md).

Measured with OpenVINO 2026.4.1 on the CPU. Small differences (rounding, order of equal values) are left to
the numeric gate. Integers that may not fit into the arithmetic of OpenVINO: see `integers`; float64:
see `doubles`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from intarsia.ir import Call, DType, Expr, Function, GlobalVar, IRModule, Op, TensorType, post_order
from intarsia.toolchain.call_facts import (
    attribute_is,
    call_types,
    is_computed,
    is_given,
    known_shape,
    passes_packed_types,
)
from intarsia.toolchain.openvino.attention import mixes_heads
from intarsia.toolchain.openvino.doubles import rounds_doubles
from intarsia.toolchain.openvino.integers import loses_bits

_NO_CONVERSION = frozenset(
    {
        *("Bernoulli", "BitCast", "CumProd", "DFT", "DeformConv", "Det", "ImageDecoder", "MaxUnpool"),
        *("MelWeightMatrix", "STFT", "TensorScatter", "TfIdfVectorizer"),
    }
)

_SIGNED = frozenset({DType.INT8, DType.INT16, DType.INT32, DType.INT64})
_FLOATS = frozenset({DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32})

_WRONG_TYPES = frozenset(
    {DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2, DType.FLOAT8_E8M0FNU}  # casts do not saturate
)


def openvino_refuses(call: Call) -> bool:
    """Whether a call of an operator of ONNX's default domain is known not to work."""
    if not isinstance(call.op, Op) or call.op.domain:
        return False
    name = call.op.name
    special = _SPECIAL.get(name)
    return (
        name in _NO_CONVERSION
        or not call_types(call).isdisjoint(_WRONG_TYPES)
        or rounds_doubles(call)
        or passes_packed_types(call)
        or (name.startswith("Reduce") and _has_unknown_rank(call))
        or (special is not None and special(call))
        or loses_bits(call)
    )


def stripped_quantization(function: Function, module: IRModule | None = None) -> bool:
    """Whether a function, or one that it calls, quantises to 16 bits: OpenVINO leaves the step out."""
    calls = _calls(function, module)
    return any(_is_operator(call, "QuantizeLinear") and _is_stripped(call) for call in calls)


def empty_attention(function: Function, module: IRModule | None = None) -> bool:
    """Whether a function, or one that it calls, has attention without queries or keys.

    OpenVINO 2026.4.1 writes outside of its memory for causal attention of 0 queries:
    Attention <q_num_heads = 2, kv_num_heads = 2, is_causal = 1> of (1, 0, 8), (1, 5, 8), (1, 5, 8).
    """
    return any(_is_operator(call, "Attention") and _is_empty(call) for call in _calls(function, module))


def overflowing_resize(function: Function, module: IRModule | None = None) -> bool:
    """Whether a function, or one that it calls, has a Resize that OpenVINO 2026.4.1 crashes on."""
    return any(
        _is_operator(call, "Resize") and _overflows_index_table(call) for call in _calls(function, module)
    )


def _calls(function: Function, module: IRModule | None) -> Iterator[Call]:
    """Calls of a function, and of the global functions that it calls."""
    functions, names = [function], set[str]()
    for item in functions:  # grows while it is walked
        for expr in post_order(item):
            if isinstance(expr, Call):
                yield expr
            elif isinstance(expr, GlobalVar) and module is not None and expr.name not in names:
                names.add(expr.name)
                callee = module.functions.get(expr)
                functions += [callee] if isinstance(callee, Function) else []


def _is_operator(expr: Expr, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and not expr.op.domain and expr.op.name == name


def _is_empty(call: Call) -> bool:
    return any(0 in (known_shape(call, number) or ()) for number in range(len(call.args)))


def _is_stripped(call: Call) -> bool:
    return not call_types(call).isdisjoint({DType.INT16, DType.UINT16})


def _has_unknown_rank(call: Call) -> bool:
    """Whether the axes of a reduction are computed, and more or fewer than one."""
    return attribute_is(call, "keepdims", 0) and is_computed(call, 1) and known_shape(call, 1) != (1,)


def _is_unknown_resize(call: Call) -> bool:
    return (
        attribute_is(call, "antialias", 1)
        or attribute_is(call, "exclude_outside", 1)
        or attribute_is(call, "coordinate_transformation_mode", "tf_crop_and_resize", "half_pixel_symmetric")
        or attribute_is(call, "coordinate_transformation_mode", "align_corners")
        or attribute_is(call, "keep_aspect_ratio_policy", "not_larger", "not_smaller")
    )


def _overflows_index_table(call: Call) -> bool:
    """Whether the table of a Resize has more elements than 31 bits count, on which OpenVINO crashes.

    Linear interpolation keeps an index and a weight for each of the 2**axes neighbours of each point of the
    resized axes; cubic interpolation addresses its result, whose bytes 32 bits must count.
    """
    source, result = known_shape(call, 0), call.checked_type
    if source is None or not isinstance(result, TensorType) or result.shape is None:
        return False
    resized = [new for old, new in zip(source, result.shape, strict=True) if old != new]
    points = math.prod(extent for extent in resized if isinstance(extent, int))
    if attribute_is(call, "mode", "linear"):
        return points << (len(resized) + 1) >= 2**31
    return attribute_is(call, "mode", "cubic") and points >= 2**30


def _is_floored_modulo_of_floats(call: Call) -> bool:
    return not attribute_is(call, "fmod", 1) and not call_types(call).isdisjoint(_FLOATS)


def _has_fraction(call: Call) -> bool:
    """Whether OpenVINO would drop the fraction of an LRN's bias."""
    bias = call.attrs.get("bias", 1.0)
    return isinstance(bias, float) and not bias.is_integer()


def _is_batchwise(call: Call) -> bool:
    return attribute_is(call, "layout", 1)


_SPECIAL: Mapping[str, Callable[[Call], bool]] = MappingProxyType(
    {
        "Attention": lambda call: mixes_heads(call) or _is_empty(call),
        "BitShift": lambda call: not call_types(call).isdisjoint(_SIGNED),
        "Celu": lambda call: not call_types(call).isdisjoint({DType.FLOAT16, DType.BFLOAT16}),
        "Col2Im": lambda call: known_shape(call, 1) != (2,),
        "DequantizeLinear": lambda call: "block_size" in call.attrs,
        "Dropout": lambda call: is_computed(call, 2),
        "GRU": _is_batchwise,
        "GridSample": lambda call: len(known_shape(call, 0) or ()) != 4,
        "LRN": _has_fraction,
        "LSTM": lambda call: _is_batchwise(call) or is_given(call, 7),
        "MatMul": mixes_heads,
        "Mod": _is_floored_modulo_of_floats,
        "Pad": lambda call: attribute_is(call, "mode", "wrap"),
        "QuantizeLinear": lambda call: "block_size" in call.attrs or _is_stripped(call),
        "RNN": _is_batchwise,
        "Resize": lambda call: _is_unknown_resize(call) or _overflows_index_table(call),
        "RoiAlign": lambda call: attribute_is(call, "mode", "max"),
        "Tile": lambda call: is_computed(call, 1),
        "Unsqueeze": lambda call: is_computed(call, 1),
    }
)
