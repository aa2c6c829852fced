"""Index checks of bounds-checked code, which runs in one thread, one lane at a time.

At the first index out of bounds the kernel writes the number of the check, from 1, and the index into its
runtime record, at `FAILED_SITE` and `FAILED_INDEX`, and returns. The caller sets the number to 0 before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.ir.prim_func import Load, Store
from intarsia.native.emission.affine_index import AffineIndex, bounds
from intarsia.native.emission.state import AccessSite, FunctionState
from intarsia.native.emission.types import Value

FAILED_SITE: Final = 48
"""Offset of the int64 number of the failed check in the runtime record, in bytes.

0 means that none failed.
"""
FAILED_INDEX: Final = 56
"""Offset of the int64 index that was out of bounds in the runtime record, in bytes."""


def check_indices(
    state: FunctionState, access: Load | Store, texts: Sequence[str], indices: Sequence[AffineIndex | Value]
) -> None:
    """Emit checks of the indices of one access, except those proven in bounds."""
    builder = state.builder
    for dimension, (text, index) in enumerate(zip(texts, indices, strict=True)):
        extent = access.buffer.shape[dimension]
        interval = bounds(index, state.symbols.table, 0) if isinstance(index, AffineIndex) else None
        if interval is not None and interval[0] >= 0 and interval[1] < extent:
            continue
        sites = state.kernel.sites
        sites.append(AccessSite(access.buffer.name, dimension, extent, isinstance(access, Store)))
        inside, outside = builder.label("inside"), builder.label("outside")
        test = builder.pure(f"icmp ult i64 {text}, {extent}")
        builder.branch(test, inside, outside)
        builder.start(outside)
        for offset, number in ((FAILED_SITE, str(len(sites))), (FAILED_INDEX, text)):
            address = builder.value_of(f"getelementptr i8, ptr {state.runtime}, i64 {offset}")
            builder.do(f"store i64 {number}, ptr {address}, align 8")
        builder.do("ret void")
        builder.start(inside)
