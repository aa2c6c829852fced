"""Calls of intarsia::token_pool."""

from __future__ import annotations

from intarsia.ir import Call, Expr, Span
from intarsia.op import call
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.token_pool_op import POOL_OF_TOKENS


def pool(x: Expr, axis: int, mode: str, *, keepdims: bool = True, span: Span | None = None) -> Call:
    """Return what becomes of the tokens of each text: a pool over their axis."""
    kept = int(keepdims)
    return call(POOL_OF_TOKENS, x, domain=INTARSIA_DOMAIN, span=span, axis=axis, keepdims=kept, mode=mode)
