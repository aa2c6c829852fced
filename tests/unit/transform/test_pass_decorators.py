"""Passes made of functions and classes."""

from __future__ import annotations

import pytest
from tests.transform_passes import ReplaceFunction, abs_function, add_abs, program

from intarsia.ir import (
    Function,
    IRModule,
    PrimFunc,
    structural_equal,
)
from intarsia.support.errors import UsageError
from intarsia.transform import (
    FunctionPass,
    ModulePass,
    PassContext,
    PassInfo,
    function_pass,
    module_pass,
    prim_func_pass,
)


class TestDecorators:
    def test_module_pass_of_a_function(self) -> None:
        assert isinstance(add_abs, ModulePass)
        assert add_abs.info == PassInfo("add_abs", 2)
        assert add_abs.__doc__ == "Adds @abs."
        after = add_abs(IRModule({}))
        assert structural_equal(after["abs"], abs_function())

    def test_module_pass_of_a_class(self) -> None:
        class Add:
            def __init__(self, name: str) -> None:
                self.name = name

            def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
                return mod.with_function(self.name, abs_function())

        decorated = module_pass(opt_level=0, name="Adder", required=("InferType",))(Add)
        left, right = decorated("left"), decorated("right")
        assert left.name == "left"
        assert isinstance(left, ModulePass)
        assert left.info == PassInfo("Adder", 0, ("InferType",))
        assert "right" not in left(program())
        assert "right" in right(program())

    def test_function_pass_of_a_function(self) -> None:
        @function_pass(opt_level=1)
        def keep(function: Function, mod: IRModule, ctx: PassContext) -> Function:
            assert mod is shown
            assert ctx is PassContext.current()
            return function

        shown = program()
        assert isinstance(keep, FunctionPass)
        assert keep(shown) is shown

    def test_function_pass_of_a_class(self) -> None:
        replace = ReplaceFunction(abs_function())
        after = replace(add_abs(program()))
        assert all(function is replace.new for function in after.functions.values())
        assert isinstance(replace, FunctionPass)

    def test_prim_func_pass_leaves_graph_functions_alone(self) -> None:
        @prim_func_pass(opt_level=1)
        def forbidden(function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
            raise AssertionError("there is no loop function")

        mod = program()
        assert forbidden(mod) is mod

    @pytest.mark.parametrize("decorator", [module_pass, function_pass, prim_func_pass])
    def test_the_level_is_needed(self, decorator: object) -> None:
        with pytest.raises(UsageError, match="a pass needs an opt_level"):
            decorator()  # type: ignore[operator]  # one of the three

    def test_the_method_is_needed(self) -> None:
        with pytest.raises(UsageError, match="class Empty needs a method 'transform_function' to be a pass"):

            @function_pass(opt_level=0)
            class Empty:
                pass

    @pytest.mark.parametrize("decorator", [module_pass, function_pass, prim_func_pass])
    def test_parentheses_are_needed(self, decorator: object) -> None:
        with pytest.raises(UsageError, match="a pass needs an opt_level") as caught:
            decorator(print)  # type: ignore[operator]  # one of the three
        assert caught.value.help.startswith("write for example @")
