"""The first wrong pass is found."""

from __future__ import annotations

import pytest
from tests.ir_programs import relu
from tests.transform_passes import named, program

from intarsia.ir import (
    Call,
    Function,
    IRModule,
    with_fields,
)
from intarsia.op import call
from intarsia.support.errors import UsageError
from intarsia.transform import (
    Pass,
    PassContext,
    Sequential,
    bisect_passes,
    function_pass,
    module_pass,
)
from intarsia.transform.pass_owner import pass_owner


class TestBisection:
    """Programs count as right while they hold no Abs."""

    @staticmethod
    def is_right(mod: IRModule) -> bool:
        return "Abs" not in str(mod)

    @staticmethod
    def steps(count: int, guilty: int) -> list[Pass]:
        def step(position: int) -> Pass:
            @function_pass(opt_level=0, name=f"step{position}")
            def append(function: Function, mod: IRModule, ctx: PassContext) -> Function:
                body = call("Abs", function.body) if position == guilty else relu(function.body)
                return with_fields(function, body=body)

            return append

        return [step(position) for position in range(count)]

    @pytest.mark.parametrize("guilty", range(16))
    def test_the_first_wrong_pass_is_found_with_few_judgements(self, guilty: int) -> None:
        sequence = Sequential([Sequential(self.steps(16, guilty))])
        found = bisect_passes(sequence, program(), self.is_right)
        assert found.guilty is not None
        assert found.guilty.name == f"step{guilty}"
        assert found.evaluations <= 5
        assert "+" in found.guilty.change.diff()

    def test_nothing_wrong(self) -> None:
        found = bisect_passes(Sequential(self.steps(4, 9)), program(), self.is_right)
        assert found.guilty is None
        assert found.evaluations == 1

    def test_passes_that_change_nothing_are_not_judged(self) -> None:
        log: list[str] = []
        found = bisect_passes(Sequential([named("a", log), named("b", log)]), program(), self.is_right)
        assert found.evaluations == 0
        assert [item.is_right for item in found.passes] == [None, None]

    def test_a_fault_that_a_later_pass_makes_up_for(self) -> None:
        @function_pass(opt_level=0)
        def repair(function: Function, mod: IRModule, ctx: PassContext) -> Function:
            assert isinstance(function.body, Call)
            return with_fields(function, body=function.body.args[0])

        sequence = Sequential([*self.steps(2, 1), repair])
        assert bisect_passes(sequence, program(), self.is_right).guilty is None
        found = bisect_passes(sequence, program(), self.is_right, exhaustive=True)
        assert found.guilty is not None
        assert found.guilty.name == "step1"
        assert [item.is_right for item in found.passes] == [True, False, True]

    def test_a_pass_that_raises_ends_the_run(self) -> None:
        @module_pass(opt_level=0)
        def fails(mod: IRModule, ctx: PassContext) -> IRModule:
            raise UsageError("no good")

        found = bisect_passes(Sequential([*self.steps(2, 0), fails]), program(), self.is_right)
        assert found.guilty is not None
        assert found.guilty.name == "step0"
        assert isinstance(found.error, UsageError)

    def test_the_pass_that_raises_is_named_with_its_module(self) -> None:
        @module_pass(opt_level=0)
        def fails(mod: IRModule, ctx: PassContext) -> IRModule:
            raise ValueError("no good")

        @module_pass(opt_level=0)
        def around(mod: IRModule, ctx: PassContext) -> IRModule:
            return fails(mod, ctx)

        sequence = Sequential([*self.steps(1, 9), Sequential([fails])])
        raised = bisect_passes(sequence, program(), self.is_right).raised
        assert raised is not None
        assert (raised.name, str(raised.error)) == ("fails", "no good")
        assert str(raised) == f"fails raised ValueError: no good (module {__name__})"
        assert "Relu" in str(raised.before)
        inside = bisect_passes(around, program(), self.is_right).raised
        assert inside is not None
        assert (inside.name, inside.owner) == (
            "fails",
            None,
        )  # it stands in no sequence, and is not registered

    def test_our_passes_are_told_from_others(self) -> None:
        owner = pass_owner("FoldConstant", Sequential([]))
        assert owner is not None
        assert owner.is_ours
        assert owner.module == "intarsia.passes.fold_constant"
        assert owner.package.startswith("intarsia ")

    def test_the_context_decides_what_runs(self) -> None:
        ctx = PassContext(disabled_pass=["step1"])
        found = bisect_passes(Sequential(self.steps(2, 1)), program(), self.is_right, ctx=ctx)
        assert [item.name for item in found.passes] == ["step0"]
