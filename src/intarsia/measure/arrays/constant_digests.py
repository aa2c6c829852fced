"""Digest a program's weights on all cores: those of a large model take seconds on one core."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from intarsia.ir import Constant, IRModule, post_order
from intarsia.ir.constant_digest import constant_digest
from intarsia.target.cpu import usable_cores

LARGE: Final = 1 << 20
"""Size in bytes from which a constant is digested by a task of its own."""

_WORTH: Final = 1 << 24
"""Total size in bytes below which starting threads takes longer than they save."""


def digest_constants(module: IRModule) -> None:
    """Compute the digests of large constants; each constant caches its digest."""
    constants = {
        expr
        for function in module.graph_functions.values()
        for expr in post_order(function)
        if isinstance(expr, Constant) and expr.data.nbytes >= LARGE
    }
    if sum(constant.data.nbytes for constant in constants) >= _WORTH:
        with ThreadPoolExecutor(usable_cores(Path("/"))) as pool:
            list(pool.map(constant_digest, constants))
