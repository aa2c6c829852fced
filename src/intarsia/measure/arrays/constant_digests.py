"""Digests of a program's weights, on all cores: those of a large model take seconds on one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from intarsia.ir import Constant, IRModule, post_order
from intarsia.ir.canonical import constant_digest
from intarsia.target.cpu import usable_cores

LARGE: Final = 1 << 20
"""Bytes from which a constant is worth a task of its own."""

_WORTH: Final = 1 << 24
"""With fewer bytes in all, threads would take longer to start than they save."""


def digest_constants(module: IRModule) -> None:
    """Have the digests of large constants computed; each keeps its own, and gives it when it is asked."""
    found = {
        expr
        for function in module.graph_functions.values()
        for expr in post_order(function)
        if isinstance(expr, Constant) and expr.data.nbytes >= LARGE
    }
    if sum(each.data.nbytes for each in found) >= _WORTH:
        with ThreadPoolExecutor(usable_cores(Path("/"))) as pool:
            list(pool.map(constant_digest, found))
