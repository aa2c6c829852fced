"""Pad for the reference toolchain: onnx 1.23's own refuses negative amounts, which cut off elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from intarsia.runtime.kernel import Array

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


@cache
def pad_operator() -> type[OpRun]:
    """The operator as a class for onnx's evaluator, in place of its own."""
    from onnx.reference.ops import op_pad

    class Pad(op_pad.Pad_18):  # type: ignore[misc]  # onnx is not typed for us
        def _run(
            self,
            data: Array,
            pads: Array,
            constant_value: Array | None = None,
            axes: Array | None = None,
            mode: str = "constant",
        ) -> tuple[Array]:
            (result,) = super()._run(data, np.maximum(pads, 0), constant_value, axes, mode)
            return (_without_cut(result, pads, range(data.ndim) if axes is None else axes),)

    return Pad


def _without_cut(data: Array, pads: Array, axes: Sequence[int] | Array) -> Array:
    """Return an array without what negative amounts cut off."""
    begins, ends = (part.tolist() for part in np.split(np.asarray(pads), 2))
    slices = [slice(None)] * data.ndim
    for axis, begin, end in zip(axes, begins, ends, strict=True):
        slices[int(axis)] = slice(max(0, -begin), max(0, data.shape[int(axis)] + min(0, end)))
    return data[tuple(slices)]
