"""Sizes that are assumed of a dimension of which the user says nothing."""

from __future__ import annotations

import re
from typing import Final

from intarsia.ir import DimRange, Function, SymbolicDim, TensorType
from intarsia.measure.sizes.dim_sizes import DimSizes

BATCH: Final = DimSizes(DimRange(1, 8))
IMAGE: Final = DimSizes(DimRange(64, 320), multiple=32)
"""Networks halve images up to five times: other sizes do not fit many of them."""
LENGTH: Final = DimSizes(DimRange(1, 128), is_log=True)

PAST: Final = DimSizes(DimRange(0, 256), is_log=True)
"""A decoder begins without a past."""

_PAST_NAME: Final = re.compile(r"(?i)past")
_BATCH_NAME: Final = re.compile(r"(?i)batch|^(n|b|bs)$")


def default_sizes(main: Function) -> dict[str, DimSizes]:
    """Return sizes for each symbolic dimension of the parameters.

    A dimension is a past by its name, a batch where it is the first of a parameter or by its name, the height
    or width of an image where it is the third or fourth of four, and a length otherwise.

    Args:
        main: Function whose unknown dimensions have names.
    """
    sizes: dict[str, DimSizes] = {}
    for param in main.params:
        type_ = param.checked_type
        if not isinstance(type_, TensorType) or type_.shape is None:
            continue
        for axis, dim in enumerate(type_.shape):
            if isinstance(dim, SymbolicDim):
                sizes.setdefault(dim.name, _usual(dim.name, axis, len(type_.shape)))
    return sizes


def _usual(name: str, axis: int, rank: int) -> DimSizes:
    if _PAST_NAME.search(name):
        return PAST
    if _BATCH_NAME.search(name) or axis == 0:
        return BATCH
    return IMAGE if rank == 4 and axis >= 2 else LENGTH
