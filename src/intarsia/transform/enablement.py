"""Whether a sequence runs a pass: disabled beats required beats level."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.transform.pass_context import PassContext
from intarsia.transform.pass_info import PassInfo


@dataclass(frozen=True, slots=True)
class Enablement:
    """An answer and its reason.

    Attributes:
        is_enabled: Whether a sequence runs the pass.
        reason: Why, in a few words.
    """

    is_enabled: bool
    reason: str


def enablement(info: PassInfo, ctx: PassContext) -> Enablement:
    """Whether a `Sequential` runs a pass under a context (seed pass_infra, PassEnabled)."""
    if info.name in ctx.disabled_pass:
        return Enablement(False, "in disabled_pass")
    if info.name in ctx.required_pass:
        return Enablement(True, "in required_pass")
    if ctx.opt_level >= info.opt_level:
        return Enablement(True, f"level {info.opt_level} <= {ctx.opt_level}")
    return Enablement(False, f"level {info.opt_level} > {ctx.opt_level}")
