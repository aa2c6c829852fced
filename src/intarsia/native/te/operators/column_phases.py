"""Images whose columns are split into phases, so that a strided convolution reads whole vectors of pixels.

Positions that lie side by side read columns that lie `stride` apart. In the copy that adds the padding,
columns p, p + stride, p + 2 x stride ... are a row of their own, phase p, in which these columns lie side by
side.
"""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import if_then_else, logical_and
from intarsia.native.te.iter_var import IterVar
from intarsia.native.te.operators.index_arithmetic import scaled
from intarsia.native.te.operators.windows import Window, tap_indices
from intarsia.native.te.tensor import Tensor


def has_column_phases(windows: Sequence[Window]) -> bool:
    """Return whether a convolution of several taps reads columns with strides."""
    return windows[-1].stride > 1 and any(window.taps > 1 for window in windows)


def in_column_phases(x: Tensor, windows: Sequence[Window], value: float, name: str) -> Tensor:
    """Declare a tensor padded as far as windows reach, with columns in phases.

    The result is (leading ..., rows ..., phases, columns).

    Args:
        x: Tensor whose spatial dimensions are the last ones.
        windows: Windows, one for each spatial dimension.
        value: Value of the padding.
        name: Name of the operation.
    """
    *outer, window = windows
    leading, stride = len(x.shape) - len(windows), window.stride
    phases, columns = _phase_count(window), window.count + (window.taps - 1) * window.dilation // stride
    last = (columns - 1) * stride + phases - 1

    def element(*indices: Expression) -> Expression:
        rows, phase, column = indices[leading:-2], indices[-2], indices[-1]
        at = scaled(column, stride) if phases == 1 else scaled(column, stride) + phase
        conditions = [condition for w, row in zip(outer, rows, strict=True) for condition in w.holds(row)]
        conditions += [at >= window.begin] if window.begin > 0 else []
        conditions += [at < window.extent + window.begin] if last >= window.extent + window.begin else []
        inside = [
            position - w.begin if w.begin else position
            for w, position in zip(windows, (*rows, at), strict=True)
        ]
        read = x[(*indices[:leading], *inside)]
        return if_then_else(logical_and(*conditions), read, value) if conditions else read

    return compute((*x.shape[:leading], *(w.reach for w in outer), phases, columns), element, name)


def tap_indices_in_phases(
    windows: Sequence[Window], positions: Sequence[Expression], taps: Sequence[IterVar]
) -> list[Expression | int]:
    """Return the indices of the taps in the dimensions of `in_column_phases`.

    Args:
        windows: Windows, one for each spatial dimension.
        positions: Position of the window along each of them.
        taps: Reduction axes of `tap_axes`.
    """
    window, column = windows[-1], positions[-1]
    rows = tap_indices(windows[:-1], positions[:-1], taps[:-1])
    if window.taps == 1:
        return [*rows, 0, column]
    if window.dilation % window.stride == 0:
        return [*rows, 0, column + scaled(taps[-1].expression, window.dilation // window.stride)]
    tap = scaled(taps[-1].expression, window.dilation)
    if _last_tap(window) < window.stride:
        return [*rows, tap, column]
    return [*rows, tap % window.stride, column + tap // window.stride]


def _last_tap(window: Window) -> int:
    """Return the distance of the last tap from the first one."""
    return (window.taps - 1) * window.dilation


def _phase_count(window: Window) -> int:
    """Return the number of phases that a window reads from, and those between them."""
    return 1 if window.dilation % window.stride == 0 else min(window.stride, _last_tap(window) + 1)
