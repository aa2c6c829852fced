"""The types of options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pytest

from intarsia.ir import IRModule
from intarsia.transform import ModulePass, PassContext, get_pass
from intarsia.transform.pass_registry import holding_pass
from intarsia.transform.pass_syntax.option_hint import option_hints
from intarsia.transform.pass_syntax.source_text import PassTextError
from intarsia.tune.passes import TuneLayout

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True)
class Rounding(ModulePass, opt_level=0):
    """A pass with annotations of which the last has a name for type checkers only."""

    kind: ClassVar[str] = "rounding"
    digits: int = 3
    names: tuple[str, ...] = ()
    limit: Decimal | None = None

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod


def test_one_unknown_name_leaves_the_other_options_their_types() -> None:
    lines = ["digits: int = 3", "names: [str, ...] = []", "limit: any = None"]
    assert list(map(str, option_hints(Rounding))) == lines
    with holding_pass("Rounding", Rounding), pytest.raises(PassTextError, match="expected digits: int"):
        get_pass("Rounding{digits=many}")


def test_inherited_options_are_resolved_where_they_are_declared() -> None:
    hints = {hint.name: str(hint) for hint in option_hints(TuneLayout)}
    assert hints["eval_passes"] == "eval_passes: [Pass, ...] = []"
    assert hints["limits"] == "limits: SearchLimits = SearchLimits"
