"""Whether an expression may stand in for another, with the devices that both are planned on."""

from __future__ import annotations

from intarsia.ir import Expr
from intarsia.target import UNCONSTRAINED


def may_replace(old: Expr, new: Expr) -> bool:
    """Whether `new` may stand where `old` was without moving the value to another device."""
    return old.virtual_device in (UNCONSTRAINED, new.virtual_device)
