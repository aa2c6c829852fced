"""Attributes of convolutions and pools, spelled out: the same window has the same attributes."""

from __future__ import annotations

from typing import Final

from intarsia.ir import Call, Expr, with_fields
from intarsia.op.window import same_pads
from intarsia.passes.rules.tensor_facts import dims_of, int_attr, ints_attr, operator_name

_WITH_WEIGHTS: Final = frozenset({"Conv", "ConvTranspose"})
_WITH_DILATIONS: Final = frozenset({"Conv", "ConvTranspose", "MaxPool", "AveragePool"})
_PADDED: Final = frozenset({"Conv", "MaxPool", "AveragePool", "LpPool"})
"""Operators whose automatic padding depends on sizes in one way; that of ConvTranspose is another."""


def explicit_window(call: Call) -> Expr | None:
    """Strides, dilations, pads, group and the kernel's shape as attributes, also where they are the default.

    Automatic padding becomes pads where it depends on sizes that are known.
    """
    name = operator_name(call)
    kernel = _kernel(call, name)
    if kernel is None:
        return None
    ones = (1,) * len(kernel)
    strides = ints_attr(call.attrs, "strides") or ones
    dilations = ints_attr(call.attrs, "dilations") or ones
    attrs = call.attrs.updated(kernel_shape=kernel, strides=strides)
    if name in _WITH_DILATIONS:
        attrs = attrs.updated(dilations=dilations)
    if name in _WITH_WEIGHTS:
        attrs = attrs.updated(group=int_attr(attrs, "group", 1))
    spans = tuple(dilation * (size - 1) + 1 for size, dilation in zip(kernel, dilations, strict=True))
    pads = _pads(call, name, spans, strides)
    if pads is not None:
        attrs = attrs.updated(auto_pad=None, pads=pads)
    return with_fields(call, attrs=attrs)


def _kernel(call: Call, name: str) -> tuple[int, ...] | None:
    given = ints_attr(call.attrs, "kernel_shape")
    if given is not None or name not in _WITH_WEIGHTS:
        return given
    dims = dims_of(call.args[1])
    sizes = tuple(dim for dim in (dims or ())[2:] if isinstance(dim, int))
    return sizes if dims is not None and len(sizes) == len(dims) - 2 else None


def _pads(call: Call, name: str, spans: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """All begins, then all ends; None where they are not known, or not for this operator."""
    mode = call.attrs.get("auto_pad", "NOTSET")
    none = (0,) * (2 * len(spans))
    if mode == "NOTSET":
        has_output_shape = "output_shape" in call.attrs
        return None if has_output_shape else ints_attr(call.attrs, "pads") or none
    if name not in _PADDED or int_attr(call.attrs, "ceil_mode", 0):
        return None
    if mode == "VALID":
        return none
    dims = dims_of(call.args[0])
    if dims is None:
        return None
    pads = same_pads(dims[2:], spans, strides, is_upper=mode == "SAME_UPPER")
    return None if pads is not None and _is_misread(call, name, pads) else pads


def _is_misread(call: Call, name: str, pads: tuple[int, ...]) -> bool:
    """Whether onnx's evaluator, which decides what is right, takes explicit pads for others.

    For a MaxPool without strides and dilations it reads four pads as top, bottom, left and right, and other
    numbers of them not at all.
    """
    if name != "MaxPool" or not any(pads):
        return False
    steps = (*(ints_attr(call.attrs, "strides") or ()), *(ints_attr(call.attrs, "dilations") or ()))
    return set(steps) <= {1} and (len(pads) != 4 or pads[1] != pads[2])
