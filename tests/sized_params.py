"""Loop functions whose parameters and grids have given extents, in place of the most that they may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from intarsia.ir import PrimFunc, with_prim_func_fields
from intarsia.ir.prim_func import Buffer, For, Statement
from intarsia.native.tir.rewriting import Access, Replacement, with_kernels
from intarsia.runtime.kernel import Array


def with_sized_params(function: PrimFunc, arrays: Mapping[str, Array], blocks: int) -> PrimFunc:
    """Return a function of one kernel whose parameters have the shapes of arrays, and its grid some blocks.

    Its code stays as it is.
    """
    sized = {param: replace(param, shape=arrays[param.name].shape) for param in function.params}

    def access(buffer: Buffer) -> Access:
        return lambda indices: (buffer, indices)

    replacement = Replacement(accesses={old: access(new) for old, new in sized.items()})

    def kernel(loop: For) -> Statement:
        changed = replacement.statement(loop)
        assert isinstance(changed, For)
        return replace(changed, extent=blocks)

    changed = with_kernels(function, kernel)
    return with_prim_func_fields(changed, params=tuple(sized.values()))
