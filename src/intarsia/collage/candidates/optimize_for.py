"""Global rewrites that a toolchain would like to have done first (seed collage_rfc, appendix C)."""

from __future__ import annotations

from collections.abc import Callable

from intarsia.ir import IRModule
from intarsia.op.operator_predicate import operator_predicate
from intarsia.support.registry import Registry
from intarsia.transform import Pass

_PREAMBLES: Registry[Pass] = Registry("optimize_for pass", group="intarsia.optimize_for")

register_optimize_for: Callable[[str, Pass], Pass] = _PREAMBLES.register
"""Say what is to be done to a whole program before a toolchain is offered parts of it, such as ConvertLayout.

Raises:
    UsageError: The toolchain has another pass already.
"""

holding_optimize_for = _PREAMBLES.holding
"""Register a pass for the duration of a `with` block, even if there is one (tests, experiments)."""


def preamble(toolchain: str) -> Pass | None:
    """The pass, or sequence, that a toolchain would like to have run; None for most.

    Raises:
        UsageError: No toolchain has that name; the nearest names are listed.
    """
    if toolchain in _PREAMBLES:
        return _PREAMBLES[toolchain]
    operator_predicate(toolchain)  # refuses an unknown name
    return None


def optimize_for(mod: IRModule, toolchain: str) -> IRModule:
    """The program after the passes that a toolchain declares; the same program if it declares none.

    The whole program is rewritten, for better or worse for the other toolchains: searches try several
    toolchains' programs, and none, and measure. Preambles do not compose.

    Raises:
        UsageError: No toolchain has that name.
    """
    found = preamble(toolchain)
    return mod if found is None else found(mod)
