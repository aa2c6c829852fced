"""A check that a pass leaves its input as it was, because others may still hold it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from intarsia.ir import Constant, Function, IRModule, post_order, structural_digest
from intarsia.support.errors import UsageError
from intarsia.transform.pass_config import register_config_option

IMMUTABLE_MODULE = register_config_option(
    "transform.immutable_module",
    bool,
    False,
    "whether to check after each pass that it left its input as it was (reads all weights twice a pass)",
)


@contextmanager
def changed_in_place(mod: IRModule) -> Iterator[None]:
    """Check that a module is the same after the block as before.

    Raises:
        UsageError: It is not.
    """
    before = _state(mod)
    yield
    if _state(mod) != before:
        raise UsageError(
            "the pass changed its input in place",
            help="build new expressions with with_fields, and copy arrays",
        )


def _state(mod: IRModule) -> tuple[str, bytes]:
    """The structural digest, and the constants' present values (their digests are cached)."""
    values = hashlib.blake2b()
    for function in mod.functions.values():
        if isinstance(function, Function):
            for expr in post_order(function):
                if isinstance(expr, Constant):
                    values.update(expr.data.tobytes())
    return structural_digest(mod), values.digest()
