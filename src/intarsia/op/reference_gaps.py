"""Forms of operators that onnx 1.23's reference implementation computes otherwise than ONNX defines.

It neither counts as evidence there nor runs them. Each form was compared with onnxruntime and, where the two
differ, with the definition written out or with OpenVINO (`tests/unit/op/test_reference_gaps.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from intarsia.ir import ABSENT, Attrs, Call, Op, TensorType, TupleType
from intarsia.op.known_value import known_value
from intarsia.op.node import OUTPUTS

_ACTIVATIONS: Final = {"GRU": ("sigmoid", "tanh"), "LSTM": ("sigmoid", "tanh", "tanh")}
"""What it computes, whatever the attribute says."""
_RNN_ACTIVATIONS: Final = frozenset({"tanh", "affine"})
"""Those of RNN that it has."""
_SEQUENCE_LENS: Final = 4
"""Position of this argument of recurrent layers."""

_REACH: Final = {"linear": 1, "cubic": 2}
"""Elements on each side of a position that Resize reads, by its mode."""
_SCALES: Final = 2
"""Position of this argument of Resize."""
_COORDINATES: Final = "coordinate_transformation_mode"

REPLACED: Final = frozenset({"LRN", "LpNormalization"})
"""Operators that it computes wrong, and that the reference toolchain has implementations of its own for."""


def reference_gap(call: Call) -> str:
    """Return what onnx's reference implementation gets wrong about a call, in words; "" if nothing is known.

    Args:
        call: A typed call.
    """
    if not isinstance(call.op, Op) or call.op.domain:
        return ""
    rule = _RULES.get(call.op.name)
    return "" if rule is None else rule(call)


def _recurrent(call: Call) -> str:
    assert isinstance(call.op, Op)
    name, attrs = call.op.name, call.attrs
    if _may_end_early(call):
        return f"{name} ignores sequence_lens"
    if "clip" in attrs:
        return f"{name} ignores clip"
    if attrs.get("input_forget"):
        return f"{name} ignores input_forget"
    return _activation_gap(name, attrs)


def _may_end_early(call: Call) -> bool:
    """Whether a sequence may have fewer steps than the longest."""
    if not _has_argument(call, _SEQUENCE_LENS):
        return False
    lengths, x = known_value(call.args[_SEQUENCE_LENS]), call.args[0].checked_type
    if lengths is None or not isinstance(x, TensorType) or x.shape is None:
        return True
    steps = x.shape[1 if call.attrs.get("layout") else 0]
    return bool((lengths != steps).any()) if isinstance(steps, int) else True


def _activation_gap(name: str, attrs: Attrs) -> str:
    given = [str(item).lower() for item in _list(attrs, "activations")]
    if name in _ACTIVATIONS:
        defaults = _ACTIVATIONS[name]
        directions = len(given) // len(defaults)
        return f"{name} ignores activations" if given != list(defaults) * directions else ""
    if not _RNN_ACTIVATIONS.issuperset(given):
        return f"{name} lacks the activations {', '.join(given)}"
    backward = [_list(attrs, key)[1:] for key in ("activations", "activation_alpha", "activation_beta")]
    forward = [_list(attrs, key)[:1] for key in ("activations", "activation_alpha", "activation_beta")]
    is_same = all(not last or last == first for first, last in zip(forward, backward, strict=True))
    return "" if is_same else f"{name} ignores the activation of the second direction"


def _max_pool(call: Call) -> str:
    attrs = call.attrs
    if not (_is_all_ones(attrs, "strides") and _is_all_ones(attrs, "dilations")):
        is_lower = attrs.get("auto_pad") == "SAME_LOWER"
        return "MaxPool pads on the wrong side with auto_pad=SAME_LOWER" if is_lower else ""
    if attrs.get(OUTPUTS, 1) != 1 and not _has_right_indices(call):
        return "MaxPool computes wrong indices with strides of 1"
    pads = _list(attrs, "pads")
    if not any(pads):
        return ""
    if attrs.get("ceil_mode"):
        return "MaxPool pads twice with ceil_mode"
    # It reads them as (top, bottom, left, right), in two dimensions only.
    is_read = len(pads) == 4 and pads[1] == pads[2]
    return "" if is_read else "MaxPool takes one end's padding for another's"


def _has_right_indices(call: Call) -> bool:
    """Whether indices of a window are those of the result as well, and no channel precedes them."""
    x, result = call.args[0].checked_type, call.checked_type
    if not isinstance(x, TensorType) or not x.is_static or not isinstance(result, TupleType):
        return False
    pooled = result.fields[0]
    if not isinstance(pooled, TensorType) or not pooled.is_static or call.attrs.get("storage_order"):
        return False
    kernel = _list(call.attrs, "kernel_shape")
    return x.static_shape[:2] == (1, 1) and list(pooled.static_shape[2:]) == kernel


def _average_pool(call: Call) -> str:
    """What ceil_mode adds is divided among both ends instead of added to the last."""
    attrs, x = call.attrs, call.args[0].checked_type
    if not attrs.get("ceil_mode"):
        return ""
    gap = "AveragePool pads both ends with ceil_mode"
    if not isinstance(x, TensorType) or not x.is_static:
        return gap
    sizes = x.static_shape[2:]
    pads = _integers(attrs, "pads") or [0] * 2 * len(sizes)
    axes = zip(
        sizes,
        _integers(attrs, "kernel_shape"),
        _integers(attrs, "dilations") or [1] * len(sizes),
        _integers(attrs, "strides") or [1] * len(sizes),
        pads[: len(sizes)],
        pads[len(sizes) :],
        strict=True,
    )
    return gap if any(_added_by_ceiling(*axis) > 1 for axis in axes) else ""


def _added_by_ceiling(size: int, kernel: int, dilation: int, stride: int, before: int, after: int) -> int:
    """Return how far the last window of a pool with ceil_mode reaches beyond the padding."""
    room = size + before + after - (kernel - 1) * dilation - 1
    steps = -(-room // stride)
    if steps * stride >= size + before:  # a window that begins behind the data is left out
        steps -= 1
    return steps * stride - room


def _lp_pool(call: Call) -> str:
    is_gap = call.attrs.get("ceil_mode") and not _is_all_ones(call.attrs, "strides")
    return "LpPool is wrong with ceil_mode" if is_gap else ""


def _grid_sample(call: Call) -> str:
    is_cubic = call.attrs.get("mode") in {"cubic", "bicubic"}
    is_border = call.attrs.get("padding_mode") == "border"
    return "GridSample is wrong with cubic interpolation at borders" if is_cubic and is_border else ""


def _resize(call: Call) -> str:
    """A position just beside an element, which is the element once padding is added, takes another."""
    attrs, x, result = call.attrs, call.args[0].checked_type, call.checked_type
    mode = attrs.get("mode", "nearest")
    if mode not in _REACH or not isinstance(x, TensorType) or not isinstance(result, TensorType):
        return ""
    if not (x.is_static and result.is_static):
        return ""
    scales = known_value(call.args[_SCALES]) if _has_argument(call, _SCALES) else None
    axes = _integers(attrs, "axes") or range(len(x.static_shape))
    for number, axis in enumerate(axes):
        size, new_size = x.static_shape[axis], result.static_shape[axis]
        given = scales is not None and number < scales.size
        factor = float(scales[number]) if given and scales is not None else new_size / max(1, size)
        if size and new_size and factor > 0:
            shrinks = min(factor, 1.0) if attrs.get("antialias") else 1.0
            reach = -math.floor(-_REACH[str(mode)] / shrinks)
            if _loses_a_position(str(attrs.get(_COORDINATES, "half_pixel")), factor, size, new_size, reach):
                return "Resize takes another element where a position is nearly that of one"
    return ""


def _loses_a_position(mode: str, factor: float, size: int, new_size: int, padding: int) -> bool:
    """Return whether some position along an axis is whole only after padding is added, as float64 rounds."""
    at = np.arange(new_size, dtype=np.float64)
    width = factor * size
    match mode:
        case "align_corners":
            positions = at * (size - 1) / (width - 1) if width != 1 else at * 0
        case "asymmetric":
            positions = at / factor
        case "half_pixel" | "pytorch_half_pixel":
            positions = (at + 0.5) / factor - 0.5
        case "half_pixel_symmetric":
            positions = size / 2 * (1 - new_size / width) + (at + 0.5) / factor - 0.5
        case _:
            return False
    padded = positions + padding
    return bool(((positions != np.floor(positions)) & (padded == np.floor(padded))).any())


_RULES: Final[dict[str, Callable[[Call], str]]] = {
    **dict.fromkeys(("RNN", "GRU", "LSTM"), _recurrent),
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "LpPool": _lp_pool,
    "GridSample": _grid_sample,
    "Resize": _resize,
}


def _has_argument(call: Call, position: int) -> bool:
    return position < len(call.args) and call.args[position].checked_type != ABSENT


def _list(attrs: Attrs, name: str) -> list[object]:
    value = attrs.get(name, ())
    return list(value) if isinstance(value, tuple) else [value]


def _integers(attrs: Attrs, name: str) -> list[int]:
    return [item for item in _list(attrs, name) if isinstance(item, int)]


def _is_all_ones(attrs: Attrs, name: str) -> bool:
    return all(item == 1 for item in _list(attrs, name))
