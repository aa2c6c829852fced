"""The first pass of a sequence that fails, with the program that it fails on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from intarsia.driver.reproducer.pass_failure import CheckLimits, PassFailure, check_pass
from intarsia.ir import IRModule
from intarsia.transform import Pass, PassContext
from intarsia.transform.enablement import enablement
from intarsia.transform.pass_registry import create_pass


@dataclass(frozen=True, slots=True)
class FoundFailure:
    """A pass that fails.

    Attributes:
        item: The pass.
        mod: Program that it fails on.
        failure: The failure of the pass on it.
    """

    item: Pass
    mod: IRModule
    failure: PassFailure


def find_failure(sequence: Pass, mod: IRModule, ctx: PassContext, limits: CheckLimits) -> FoundFailure | None:
    """Run the passes of a sequence one by one, and check each; None if all are right.

    Args:
        sequence: The sequence; the order of its passes has been checked.
        mod: The program; it counts as right.
        ctx: Level, names and options to run under. Its instruments are not called.
        limits: Limits of each check.
    """
    settings = PassContext(ctx.opt_level, ctx.required_pass, ctx.disabled_pass, ctx.config)
    for item in _innermost(sequence, settings):
        failure = check_pass(item, mod, settings, limits)
        if failure is not None:
            return FoundFailure(item, mod, failure)
        mod = item(mod, settings)
    return None


def _innermost(sequence: Pass, ctx: PassContext) -> Iterator[Pass]:
    """The passes that run, in order: required ones first, sequences as what is in them."""
    for item in sequence.inner_passes:
        if enablement(item.info, ctx).is_enabled:
            yield from _with_required(item, ctx)


def _with_required(item: Pass, ctx: PassContext) -> Iterator[Pass]:
    for name in item.info.required:
        yield from _with_required(create_pass(name), ctx)
    if item.inner_passes:
        yield from _innermost(item, ctx)
    else:
        yield item
