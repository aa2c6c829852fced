"""A pass on some functions only."""

from __future__ import annotations

import pytest
from tests.transform_passes import AppendRelu, add_abs, program

from intarsia.ir import (
    IRModule,
    with_module_fields,
)
from intarsia.support.errors import UsageError
from intarsia.transform import (
    ApplyPassToFunction,
    PassContext,
    module_pass,
)


class TestApplyPassToFunction:
    def test_only_matching_functions_change(self) -> None:
        mod = add_abs(program())
        after = ApplyPassToFunction(AppendRelu(), "ma.*")(mod)
        assert after["abs"] is mod["abs"]
        assert after["main"] is not mod["main"]

    def test_the_whole_name_has_to_match(self) -> None:
        mod = program()
        assert ApplyPassToFunction(AppendRelu(), "mai")(mod) is mod

    def test_added_functions_are_kept(self) -> None:
        after = ApplyPassToFunction(add_abs, "main")(program())
        assert [var.name for var in after.functions] == ["main", "abs"]

    def test_module_passes_cannot_change_the_others(self) -> None:
        @module_pass(opt_level=0)
        def removes_abs(mod: IRModule, ctx: PassContext) -> IRModule:
            functions = {var: function for var, function in mod.functions.items() if var.name != "abs"}
            return with_module_fields(mod, functions=functions)

        mod = add_abs(program())
        assert ApplyPassToFunction(removes_abs, "main")(mod)["abs"] is mod["abs"]

    def test_nothing_matches(self) -> None:
        with pytest.raises(UsageError, match="no function matches 'x'") as caught:
            ApplyPassToFunction(AppendRelu(), "x", error_if_no_match=True)(program())
        assert caught.value.help == "the module has: @main"

    @pytest.mark.parametrize("wrong", ["AppendRelu", AppendRelu])
    def test_takes_a_pass(self, wrong: object) -> None:
        with pytest.raises(UsageError, match="ApplyPassToFunction takes a pass, got"):
            ApplyPassToFunction(wrong, "main")  # type: ignore[arg-type]  # the mistake

    def test_no_regular_expression(self) -> None:
        with pytest.raises(UsageError, match=r"'\(' is no regular expression"):
            ApplyPassToFunction(AppendRelu(), "(")(program())
