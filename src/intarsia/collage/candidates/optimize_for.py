"""Global rewrites that a toolchain would like to have done first (seed collage_rfc, appendix C).

A toolchain's preamble is the pipeline `optimize_for_<toolchain>`, if there is one. A program is rewritten as
a whole, for better or worse for the other toolchains, and preambles do not compose. So each is applied for
the candidates of its own toolchain, beside the program as it is, and measuring decides.
"""

from __future__ import annotations

from typing import Final

from intarsia.ir import IRModule
from intarsia.op.operator_predicate import operator_predicate
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.toolchain import preambles  # noqa: F401  # registers those of this package
from intarsia.transform import Sequential, load_pass_sequence, pipeline_names

PREFIX: Final = "optimize_for_"


def preamble(toolchain: str) -> Sequential | None:
    """Return the passes that a toolchain would like to have run; None for most.

    Raises:
        UsageError: No toolchain has that name; the nearest names are listed.
    """
    name = PREFIX + toolchain
    if name in pipeline_names():
        return load_pass_sequence(name)
    if toolchain not in TOOLCHAINS:
        operator_predicate(toolchain)  # refuses an unknown name
    return None


def optimize_for(mod: IRModule, toolchain: str) -> IRModule:
    """Return the program after a toolchain's preamble; the same program if that changes nothing.

    Raises:
        UsageError: No toolchain has that name.
    """
    passes = preamble(toolchain)
    return mod if passes is None else passes(mod)
