"""What every pass does, whatever it is for."""

from __future__ import annotations

import pytest
from tests.ir_programs import relu, var
from tests.transform_passes import AppendRelu, ReplaceFunction, add_abs, program

from intarsia.ir import (
    Call,
    Function,
    GlobalVar,
    IRModule,
    with_fields,
)
from intarsia.support.errors import UsageError
from intarsia.transform import (
    PassContext,
    PassInfo,
    ProgramFeature,
    Sequential,
    function_pass,
    module_pass,
)


class TestPass:
    def test_facts_stand_in_the_class_statement(self) -> None:
        assert AppendRelu().info == PassInfo("AppendRelu", 1)
        assert str(AppendRelu(3)) == "AppendRelu{times=3}"
        assert AppendRelu(3).options == {"times": 3}

    def test_a_subclass_inherits_facts(self) -> None:
        class AppendTwo(AppendRelu, required=("InferType",)):
            pass

        assert AppendTwo().info == PassInfo("AppendTwo", 1, ("InferType",))
        assert AppendRelu.info.required == ()

    def test_facts_can_be_given_at_instantiation(self) -> None:
        changed = AppendRelu(2).with_info(required=("InferType",), opt_level=3)
        assert changed.info == PassInfo("AppendRelu", 3, ("InferType",))
        assert changed.times == 2
        assert AppendRelu(2).info.opt_level == 1

    @pytest.mark.parametrize(
        ("facts", "message"),
        [
            ({"opt_level": "1"}, "pass AppendRelu has the opt_level '1', expected a whole number"),
            (
                {"required": "InferType"},
                "'required' of pass AppendRelu is the string 'InferType', expected a l",
            ),
            ({"after": (AppendRelu,)}, "'after' of pass AppendRelu has the class AppendRelu in it"),
            ({"conflicts": 3}, "'conflicts' of pass AppendRelu is of type int, expected a list"),
            (
                {"directly_after": ("a",)},
                r"'directly_after' of pass AppendRelu is \('a',\), expected the name of o",
            ),
            (
                {"handles": ["tuples"]},
                "'handles' of pass AppendRelu has 'tuples', expected a list of ProgramF",
            ),
            (
                {"handles": ProgramFeature.LET},
                "'handles' of pass AppendRelu has 'let', expected a list of Pr",
            ),
            ({"requires": ("InferType",)}, "passes have no fact 'requires'"),
        ],
    )
    def test_facts_of_the_wrong_type(self, facts: dict[str, object], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            AppendRelu().with_info(**facts)

    def test_a_class_statement_takes_lists_of_names(self) -> None:
        with pytest.raises(UsageError, match="'required' of pass Wrong is the string 'InferType'"):

            class Wrong(AppendRelu, required="InferType"):
                pass

    def test_runs_under_a_context(self) -> None:
        with pytest.raises(UsageError, match="pass AppendRelu runs under a PassContext, got dict"):
            AppendRelu()(program(), {"opt_level": 2})  # type: ignore[arg-type]  # the mistake

    def test_a_pass_takes_a_module(self) -> None:
        with pytest.raises(UsageError, match="pass AppendRelu takes an IRModule, got Function"):
            AppendRelu()(program()["main"])  # type: ignore[arg-type]  # the mistake

    def test_a_module_pass_returns_a_module(self) -> None:
        @module_pass(opt_level=0)
        def forgets(mod: IRModule, ctx: PassContext) -> IRModule:
            return None  # type: ignore[return-value]  # the mistake

        with pytest.raises(UsageError, match="pass forgets returned NoneType, expected an IRModule"):
            forgets(program())

    def test_a_function_pass_returns_a_function(self) -> None:
        with pytest.raises(
            UsageError, match="pass ReplaceFunction returned int for @main, expected a Function"
        ):
            ReplaceFunction(1)(program())

    def test_an_error_says_where(self) -> None:
        @function_pass(opt_level=0)
        def fails(function: Function, mod: IRModule, ctx: PassContext) -> Function:
            raise UsageError("no good")

        with pytest.raises(UsageError) as caught:
            Sequential([fails], name="all")(program())
        assert str(caught.value) == "no good\n  in function @main\n  in pass fails\n  in pass all"

    @pytest.mark.parametrize("mark", ["SkipOptimization", "Compiler"])
    def test_marked_functions_are_skipped(self, mark: str) -> None:
        main = program()["main"]
        marked = with_fields(main, attrs=main.attrs.updated(**{mark: "x"}))
        mod = IRModule.from_expr(marked)
        assert AppendRelu()(mod) is mod

    def test_functions_see_the_module_as_it_was(self) -> None:
        mod = add_abs(program())
        seen = []

        @function_pass(opt_level=0)
        def look(function: Function, shown: IRModule, ctx: PassContext) -> Function:
            seen.append(shown)
            return with_fields(function, body=relu(function.body))

        after = look(mod)
        assert seen == [mod, mod]
        assert after is not mod


def test_calls_of_global_functions_keep_their_variables() -> None:
    mod = add_abs(program())
    x = var()
    caller = Function((x,), Call(GlobalVar("abs"), (x,)))
    after = AppendRelu()(mod.with_function("caller", caller))
    assert [item.name for item in after.functions] == ["main", "abs", "caller"]
