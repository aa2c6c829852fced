"""Decisions on native's kernels in the targets of a program's functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from intarsia.ir import IRModule
from intarsia.native.graph import KernelDecisions
from intarsia.toolchain.native.options import DECISIONS
from intarsia.tune.target_options import change_target_option
from intarsia.tune.transformations import transformation

_NATIVE: Final = "native"


@transformation
def decide_kernels(mod: IRModule, settings: Mapping[str, Mapping[str, str]], target: str = "") -> IRModule:
    """Replace native's rules for some fusion groups, in all functions assigned to native.

    Args:
        mod: The program.
        settings: Texts of values by name of the setting (`KernelDecision`), by key of the group.
        target: Target of the whole program if it assigns no function to a toolchain; "" for none.

    Raises:
        UsageError: There is no such setting, or it has no such value.

    Before:
        def @f(%x: Tensor[(2,), float32]) attributes {
          Compiler="native", target="cpu -toolchain=native"
        } { Relu(%x) }
    After: (settings={"0123456789ab": {"threads": "1"}})
        def @f(%x: Tensor[(2,), float32]) attributes {
          Compiler="native", target="cpu -toolchain=native -decisions=0123456789ab:threads=1"
        } { Relu(%x) }
    """

    def changed(text: str | None) -> str | None:
        return str(KernelDecisions.parse(text or "").updated(settings)) or None

    return change_target_option(mod, _NATIVE, DECISIONS.name, changed, target)
