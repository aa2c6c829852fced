"""Multiplications by constants per channel, folded into weights."""

from __future__ import annotations

from typing import Final

from intarsia.passes.backward_fold_scale_axis import BackwardFoldScaleAxis
from intarsia.passes.forward_fold_scale_axis import ForwardFoldScaleAxis
from intarsia.transform import Sequential, register_pass

FoldScaleAxis: Final = register_pass(
    Sequential([BackwardFoldScaleAxis(), ForwardFoldScaleAxis()], name="FoldScaleAxis", opt_level=2)
)
"""Backward first, as it needs one layer only; then what is left, forward (seed pass_infra)."""
