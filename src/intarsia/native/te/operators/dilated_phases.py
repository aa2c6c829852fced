"""Dilated convolutions of blocked tensors as convolutions without dilation of the phases of the image.

A convolution with dilation d and stride 1 never mixes pixels whose rows, or columns, differ by anything but a
multiple of d. The d x d phases of the image so are images of their own, d times as small, on which the
convolution has no dilation: transforms can compute it. TensorFlow calls the two copies SpaceToBatch and
BatchToSpace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import if_then_else, logical_and
from intarsia.native.te.operators.blocked_layout import BLOCKED, PADDING, axis_names
from intarsia.native.te.operators.windows import Window
from intarsia.native.te.tensor import Tensor


def windows_in_phases(windows: Sequence[Window], tile: int) -> tuple[Window, ...]:
    """Return the windows of a phase: without dilation, and inside of the padded phase.

    Args:
        windows: Windows of rows and columns, of stride 1 and with one dilation.
        tile: Number of positions of which there is a multiple in a padded phase.
    """
    counts = [-(-window.count // window.dilation) for window in windows]
    return tuple(
        replace(
            window,
            extent=-(-count // tile) * tile + window.taps - 1,
            count=count,
            dilation=1,
            begin=0,
            end=0,
        )
        for window, count in zip(windows, counts, strict=True)
    )


def to_phases(x: Tensor, windows: Sequence[Window], inner: Sequence[Window], name: str) -> Tensor:
    """Declare the padded phases of an image: (N x d x d, C / ci, rows, columns, ci).

    Args:
        x: (N, C / ci, H, W, ci).
        windows: Windows of the dilated convolution.
        inner: Windows from `windows_in_phases`.
        name: Name of the operation.
    """
    dilation = windows[0].dilation

    def element(p: Expression, c: Expression, h: Expression, w: Expression, v: Expression) -> Expression:
        phases = p // dilation % dilation, p % dilation
        at = [position * dilation + phase for position, phase in zip((h, w), phases, strict=True)]
        conditions = []
        for window, position in zip(windows, at, strict=True):
            conditions += [position >= window.begin] if window.begin else []
            conditions.append(position < window.extent + window.begin)
        row, column = (position - window.begin for window, position in zip(windows, at, strict=True))
        return if_then_else(logical_and(*conditions), x[p // dilation**2, c, row, column, v], 0.0)

    extents = tuple(window.extent for window in inner)
    shape = (x.shape[0] * dilation**2, x.shape[1], *extents, x.shape[-1])
    return compute(shape, element, name, axis_names(2), {BLOCKED: PADDING})


def from_phases(x: Tensor, windows: Sequence[Window], name: str) -> Tensor:
    """Declare the image of some phases: (N, C / lanes, H, W, lanes).

    Args:
        x: (N x d x d, C / lanes, rows, columns, lanes).
        windows: Windows of the dilated convolution.
        name: Name of the operation.
    """
    dilation = windows[0].dilation

    def element(n: Expression, c: Expression, h: Expression, w: Expression, v: Expression) -> Expression:
        phase = (n * dilation + h % dilation) * dilation + w % dilation
        return x[phase, c, h // dilation, w // dilation, v]

    counts = tuple(window.count for window in windows)
    shape = (x.shape[0] // dilation**2, x.shape[1], *counts, x.shape[-1])
    return compute(shape, element, name, axis_names(2))
