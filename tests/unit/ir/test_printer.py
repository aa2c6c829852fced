import dataclasses

import numpy as np
import pytest
from tests.ir_programs import BOOL, F32, add, branch, module, ones, relu, var

from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    Span,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    with_fields,
)
from intarsia.ir.listing import ProgramText
from intarsia.ir.printer import print_expr, print_module
from intarsia.target import DeviceType, VirtualDevice

CPU = VirtualDevice(DeviceType.CPU)
SPAN = Span("m.onnx", "node")
T = "Tensor[(2, 3), float32]"


def bare(expr: Expr) -> list[str]:
    """Lines of an expression without types."""
    return print_expr(expr, show_types=False).text.splitlines()


def test_constants_are_numbered_in_order_of_first_appearance_and_not_copied() -> None:
    first, second = ones(), ones()
    printed = print_expr(Call(Op("F"), (second, first, second), Attrs({"value": first})))
    assert printed.text.splitlines()[0] == (
        "%0 = F(meta[Constant][0], meta[Constant][1], meta[Constant][0], value=meta[Constant][1]);"
    )
    assert printed.constants[0] is second.data
    assert printed.constants[1] is first.data


def test_the_result_is_immutable() -> None:
    printed = print_expr(ones())
    assert isinstance(printed, ProgramText)
    with pytest.raises(dataclasses.FrozenInstanceError):
        printed.text = ""  # type: ignore[misc]  # this is what is tested


def test_a_shared_expression_is_bound_once() -> None:
    shared = relu(ones())
    assert bare(add(shared, shared)) == ["%0 = Relu(meta[Constant][0]);", "%1 = Add(%0, %0);", "%1"]


def test_tuples_and_fields() -> None:
    one = Tuple((ones(),))
    assert bare(TupleGetItem(one, 0))[:2] == ["%0 = (meta[Constant][0],);", "%1 = %0.0;"]
    assert bare(Tuple((one, Tuple(()))))[1] == "%1 = (%0, ());"


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (with_fields(ones(), virtual_device=CPU), "meta[Constant][0] @device(cpu)"),
        (with_fields(ones(), span=SPAN), 'meta[Constant][0] @span("node", "m.onnx")'),
        (with_fields(ones(), checked_type=BOOL), "meta[Constant][0]: Tensor[(), bool]"),
        (with_fields(Tuple(()), virtual_device=CPU), "() @device(cpu)"),
        (GlobalVar("f", span=SPAN, checked_type=F32), '@f @span("node", "m.onnx")'),
        (Op("Relu", "a.b", virtual_device=CPU), "a.b::Relu @device(cpu)"),
    ],
)
def test_annotated_atoms(expr: Expr, text: str) -> None:
    assert print_expr(expr).text == text + "\n"
    assert print_expr(Call(Op("F"), (expr,))).text.splitlines()[0] == f"%0 = F({text});"


def test_an_annotated_operator_is_called_in_parentheses() -> None:
    assert bare(Call(Op("F", virtual_device=CPU), ()))[0] == "%0 = (F @device(cpu))();"


def test_an_open_device_is_not_written() -> None:
    assert print_expr(with_fields(ones(), virtual_device=VirtualDevice())).text == "meta[Constant][0]\n"


def test_what_is_not_to_be_shown_is_left_out() -> None:
    x = with_fields(var(), virtual_device=CPU, span=SPAN)
    mod = module(x, body=ones())
    assert f"%x: {T} @device(cpu) @span" in print_module(mod).text
    assert f"%x: {T} @span" in print_module(mod, show_devices=False).text
    assert f"%x: {T} @device(cpu))" in print_module(mod, show_spans=False).text
    assert "(%x @device(cpu) @span" in print_module(mod, show_types=False).text


def test_a_let_that_is_the_result_of_its_scope_is_a_statement() -> None:
    x, y, z = var("x"), var("y"), var("z")
    lets = Let(y, relu(x), Let(z, relu(y), add(y, z)))
    assert bare(Function((x,), lets)) == [
        "fn (%x) {",
        "  %0 = Relu(%x);",
        "  let %y = %0;",
        "  %1 = Relu(%y);",
        "  let %z = %1;",
        "  %2 = Add(%y, %z);",
        "  %2",
        "}",
    ]


def test_a_let_inside_an_expression_has_braces() -> None:
    y = var("y")
    let = Let(y, ones(), relu(y), span=SPAN)
    assert bare(relu(let)) == [
        '%0 = let @span("node", "m.onnx") %y = meta[Constant][0] {',
        "  %1 = Relu(%y);",
        "  %1",
        "};",
        "%2 = Relu(%0);",
        "%2",
    ]


def test_the_type_of_a_let_is_written_where_it_is_not_that_of_its_body() -> None:
    y = var("y")
    assert "let %y" in print_expr(Let(y, ones(), y)).text
    assert "let: Tensor[(), bool] %y" in print_expr(Let(y, ones(), y, checked_type=BOOL)).text


@pytest.mark.parametrize(
    ("own_type", "head"),
    [
        (None, f"fn (%x: {T}) -> {T} {{"),
        (FuncType((F32,), BOOL), f"fn (%x: {T}) -> Tensor[(), bool] {{"),
        (FuncType((F32,), None), f"fn (%x: {T}) -> _ {{"),
        (FuncType((BOOL,), F32), f"fn (%x: {T}): fn (Tensor[(), bool]) -> {T} {{"),
        (F32, f"fn (%x: {T}): {T} {{"),
    ],
)
def test_types_of_functions(own_type: TensorType | FuncType | None, head: str) -> None:
    x = var()
    assert print_expr(Function((x,), x, checked_type=own_type)).text.splitlines()[0] == head


def test_a_function_without_known_types() -> None:
    assert print_expr(Function((x := Var("x"),), x)).text.splitlines()[0] == "fn (%x) {"


def test_functions_are_values_with_a_name() -> None:
    x, y = var("x"), var("y")
    function = Function((y,), relu(y), Attrs({"Primitive": 1}))
    assert bare(Call(function, (Call(function, (x,)),))) == [
        "free_var %x;",
        "%0 = fn (%y) attributes {Primitive=1} {",
        "  %1 = Relu(%y);",
        "  %1",
        "};",
        "%2 = %0(%x);",
        "%3 = %0(%2);",
        "%3",
    ]


def test_an_expression_used_by_two_branches_stands_before_them() -> None:
    c, shared = var("c", BOOL), relu(ones())
    assert bare(branch(c, shared, relu(shared))) == [
        "free_var %c;",
        "%0 = Relu(meta[Constant][0]);",
        "%1 = if (%c) {",
        "  %0",
        "} else {",
        "  %2 = Relu(%0);",
        "  %2",
        "};",
        "%1",
    ]


def test_variables_of_one_name_get_suffixes_only_where_both_are_in_scope() -> None:
    def body(name: str) -> Function:
        x = var(name)
        return Function((x,), relu(x))

    siblings = Tuple((body("x"), body("x")))
    assert [line for line in bare(siblings) if "fn" in line] == ["%0 = fn (%x) {", "%2 = fn (%x) {"]
    outer = var("x")
    nested = Function((outer, var("x"), var("x_1")), Call(body("x"), (outer,)))
    assert bare(nested)[:2] == ["fn (%x, %x_1, %x_1_1) {", "  %0 = fn (%x_2) {"]


def test_free_variables_of_a_global_function_are_declared_in_it() -> None:
    assert "  free_var %z: " in print_module(module(body=relu(var("z")))).text


def test_a_program_that_breaks_the_rules_is_printed_nevertheless() -> None:
    x, y = var("x"), var("y")
    function = Function((x,), relu(x))
    broken = Tuple((function, x, Let(y, y, y), Let(y, x, y), If(function, y, x)))
    assert len(bare(broken)) > 10


def test_module_attributes_and_several_functions() -> None:
    mod = IRModule(
        {GlobalVar("a b"): Function((), ones()), GlobalVar("if"): Function((), ones())}, Attrs({"k": 1})
    )
    assert print_module(mod, show_types=False).text == (
        '#[version = "0.1"]\n#[attrs(k=1)]\ndef @"a b"() {\n  meta[Constant][0]\n}\n\n'
        'def @"if"() {\n  meta[Constant][1]\n}\n'
    )


def test_an_empty_module() -> None:
    assert print_module(IRModule({})).text == '#[version = "0.1"]\n'


def test_deep_nesting_is_not_indented_without_end() -> None:
    c, expr = var("c", BOOL), relu(ones())
    for _ in range(500):
        expr = branch(c, relu(expr), ones())  # type: ignore[assignment]  # any expression will do
    lines = bare(expr)
    assert max(len(line) - len(line.lstrip()) for line in lines) == 40


def test_attributes_of_no_kind_are_refused() -> None:
    with pytest.raises(TypeError, match="an attribute cannot hold a ndarray"):
        print_expr(Call(Op("F"), (), Attrs({"value": np.zeros(1)})))  # type: ignore[dict-item]  # as above


def test_a_constant_of_another_object_is_another_constant() -> None:
    data = np.zeros(11)
    assert len(print_expr(Tuple((Constant(data), Constant(data)))).constants) == 2
