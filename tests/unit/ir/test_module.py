import weakref

import pytest
from tests.ir_programs import ones, relu, var
from tests.loop_programs import matmul, scale

from intarsia.ir import Attrs, DType, Expr, Function, GlobalVar, IRModule, TensorType, with_module_fields
from intarsia.support.errors import UsageError

F, G = Function((), ones()), Function((), relu(ones()))


def test_functions_are_found_by_name() -> None:
    mod = IRModule({GlobalVar("main"): F, GlobalVar("other"): G})
    assert mod["main"] is F
    assert mod[GlobalVar("other")] is G
    assert "main" in mod
    assert GlobalVar("other") in mod
    assert "nothing" not in mod
    assert [v.name for v in mod] == ["main", "other"]


def test_from_expr() -> None:
    mod = IRModule.from_expr(F)
    assert mod["main"] is F
    assert mod.global_var("main").checked_type == F.checked_type


def test_a_missing_function_is_an_error_that_lists_the_others() -> None:
    with pytest.raises(UsageError) as caught:
        IRModule.from_expr(F)["mian"]
    assert str(caught.value) == "the module has no function @mian\nhelp: it has: @main"


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="the module defines @f twice"):
        IRModule({GlobalVar("f"): F, GlobalVar("f"): G})


def test_cannot_be_changed() -> None:
    functions = {GlobalVar("main"): F}
    mod = IRModule(functions)
    functions[GlobalVar("f")] = G
    assert "f" not in mod
    with pytest.raises(TypeError):
        mod.functions[GlobalVar("f")] = G  # type: ignore[index]  # this is what is tested


def test_with_function() -> None:
    mod = IRModule.from_expr(F)
    assert mod.with_function("main", F) is mod
    replaced = mod.with_function("main", G)
    assert replaced["main"] is G
    assert list(replaced) == list(mod)
    added = mod.with_function("g", G)
    assert [v.name for v in added] == ["main", "g"]
    assert added.global_var("g").checked_type == G.checked_type
    own = GlobalVar("h")
    assert mod.with_function(own, G).global_var("h") is own


def test_functions_of_both_kinds() -> None:
    mod = IRModule({GlobalVar("loops"): scale(), GlobalVar("main"): F, GlobalVar("more"): matmul()})
    assert [var.name for var in mod.functions] == ["loops", "main", "more"]
    assert {var.name: one for var, one in mod.graph_functions.items()} == {"main": F}
    assert {var.name: one for var, one in mod.prim_funcs.items()} == {"loops": scale(), "more": matmul()}
    assert mod.prim_func("more") is mod.prim_func(GlobalVar("more"))
    assert "loops" in mod


def test_with_a_loop_function() -> None:
    mod = IRModule.from_expr(F)
    added = mod.with_function("loops", scale())
    assert added.global_var("loops").checked_type is None
    assert added.with_function("loops", added.prim_func("loops")) is added
    assert added.with_function("loops", matmul()).prim_func("loops") == matmul()
    assert with_module_fields(added, functions=dict(added.functions)) is added
    assert added.with_function("loops", G)["loops"] is G


def test_can_be_weakly_referenced() -> None:
    mod = IRModule.from_expr(F)
    assert weakref.ref(mod)() is mod


def test_with_module_fields() -> None:
    mod = IRModule.from_expr(F)
    assert with_module_fields(mod) is mod
    assert with_module_fields(mod, dict(mod.functions), Attrs({})) is mod
    named = with_module_fields(mod, attrs=Attrs({"name": "m"}))
    assert (named.attrs["name"], named["main"]) == ("m", F)


def test_the_text_is_the_printed_program() -> None:
    x = var()
    expected = (
        '#[version = "0.1"]\n'
        "def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {\n"
        "  %0 = Relu(%x): Tensor[(2, 3), float32];\n"
        "  %0\n"
        "}\n"
    )
    assert str(IRModule.from_expr(Function((x,), relu(x)))) == expected


def test_what_is_no_function_is_refused() -> None:
    x = var()
    with pytest.raises(UsageError, match="defines @f as a value of type int, expected a function"):
        IRModule({GlobalVar("f"): 3})  # type: ignore[dict-item]  # the mistake
    with pytest.raises(UsageError, match="defines @main as a value of type Var, expected a function"):
        IRModule.from_expr(x)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(UsageError, match="defines @g as a value of type Var, expected a function"):
        IRModule.from_expr(F).with_function("g", x)  # type: ignore[arg-type]  # the mistake


def test_names_and_containers_of_other_types_are_refused() -> None:
    with pytest.raises(UsageError, match="has 'f' as a name, expected a GlobalVar"):
        IRModule({"f": F})  # type: ignore[dict-item]  # the mistake
    with pytest.raises(
        UsageError, match="takes a dict of GlobalVars and functions, got a value of type list"
    ):
        IRModule([F])  # type: ignore[arg-type]  # the mistake
    with pytest.raises(UsageError, match="functions of a module have names, got 3"):
        IRModule.from_expr(F)[3]  # type: ignore[index]  # the mistake


def test_the_short_form_names_functions_and_counts_calls() -> None:
    x = var("x", TensorType((2, 3), DType.FLOAT32))
    mod = IRModule.from_expr(Function((x,), relu(relu(x))))
    assert repr(mod) == ("IRModule(@main: fn (Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32]; 2 calls)")
    many = IRModule({GlobalVar(f"f{number}"): G for number in range(7)})
    assert repr(many) == "IRModule(@f0, @f1, @f2, @f3, @f4, 2 more; 1 call)"
    assert repr(IRModule({})) == "IRModule(no functions; 0 calls)"
    assert repr(IRModule({GlobalVar("scale"): scale()})) == "IRModule(@scale; 0 calls)"


def test_a_notebook_shows_the_first_lines() -> None:
    x = var("x", TensorType((2, 3), DType.FLOAT32))
    text = IRModule.from_expr(Function((x,), relu(x)))._repr_html_()
    assert text.startswith("<pre>")
    assert "-&gt; Tensor[(2, 3), float32]" in text
    value: Expr = x
    for _ in range(300):
        value = relu(value)
    lines = IRModule.from_expr(Function((x,), value))._repr_html_().splitlines()
    assert len(lines) == 201
    assert lines[-1].endswith("more lines: print(module)</pre>")
