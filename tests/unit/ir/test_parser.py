import threading

import numpy as np
import pytest
from tests.each_case import each_case
from tests.ir_programs import BOOL, F32, add, assert_same_facts, assert_same_program, branch, ones, relu, var

from intarsia.ir import (
    Attrs,
    AttrValue,
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
    OptionalType,
    SequenceType,
    Span,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    structural_equal,
)
from intarsia.ir.parser import parse_expr, parse_module
from intarsia.ir.printer import print_expr, print_module
from intarsia.target import DeviceType, Target, VirtualDevice


def call_of(name: str, *args: Expr, **attrs: AttrValue) -> Call:
    return Call(Op(name), args, Attrs(attrs))


def test_nested_calls_without_temporaries() -> None:
    expr = parse_expr("free_var %x; Add(Relu(%x), Neg(Relu(%x)))")
    x = Var("x")
    assert structural_equal(expr, call_of("Add", call_of("Relu", x), call_of("Neg", call_of("Relu", x))))
    assert expr.checked_type is None


def test_temporaries_are_shared_and_may_have_names() -> None:
    expr = parse_expr("free_var %x; %y = Relu(%x); %0 = Add(%y, %y); %0")
    assert isinstance(expr, Call)
    assert expr.args[0] is expr.args[1]


def test_what_is_not_used_is_dropped() -> None:
    assert structural_equal(parse_expr("%0 = Relu(); %1 = Neg(); %1"), call_of("Neg"))


def test_a_temporary_is_not_a_variable_of_that_name() -> None:
    expr = parse_expr('free_var %"0"; %0 = Relu(%"0"); Add(%0, %"0")')
    x = Var("0")
    assert structural_equal(expr, call_of("Add", call_of("Relu", x), x))


def test_quotes_around_a_plain_name_do_not_matter() -> None:
    assert isinstance(parse_expr('free_var %x; %"x"'), Var)


@each_case(
    ("text", "expr"),
    [
        ("()", Tuple(())),
        ("((),)", Tuple((Tuple(()),))),
        ("((), ())", Tuple((Tuple(()), Tuple(())))),
        ("((), (),)", Tuple((Tuple(()), Tuple(())))),
        ("(A())", call_of("A")),
        ("(A(), B()).1.0", TupleGetItem(TupleGetItem(Tuple((call_of("A"), call_of("B"))), 1), 0)),
        ("A().12", TupleGetItem(call_of("A"), 12)),
        ("A", Op("A")),
        ("a.b::A", Op("A", "a.b")),
        ('"a b"::"if"', Op("if", "a b")),
        ('x::"if"()', Call(Op("if", "x"), ())),
        ('"let"(k=1)', Call(Op("let"), (), Attrs({"k": 1}))),
        ("@f", GlobalVar("f")),
        ('@"a b"(())', Call(GlobalVar("a b"), (Tuple(()),))),
        ("@device()", Call(GlobalVar("device"), ())),
        ("fn () { () }", Function((), Tuple(()))),
        ("fn () { () }()", Call(Function((), Tuple(())), ())),
        ("fn () attributes {Primitive=1} { () }", Function((), Tuple(()), Attrs({"Primitive": 1}))),
        ("A()()", Call(call_of("A"), ())),
        ("if (A()) { B() } else { C() }", If(call_of("A"), call_of("B"), call_of("C"))),
        ("%0 = A(); if (%0) { %1 = B(%0); %1 } else { () }", None),
        ("iffy(letter, fnord, definition)", call_of("iffy", Op("letter"), Op("fnord"), Op("definition"))),
    ],
)
def test_expressions(text: str, expr: Expr | None) -> None:
    if expr is None:
        cond = call_of("A")
        expr = If(cond, call_of("B", cond), Tuple(()))
    assert structural_equal(parse_expr(text), expr)


def test_lets() -> None:
    v, w = Var("v"), Var("w")
    expected = Let(v, call_of("A"), Let(w, call_of("B", v), call_of("C", v, w)))
    assert structural_equal(parse_expr("let %v = A(); let %w = B(%v); C(%v, %w)"), expected)
    assert structural_equal(parse_expr("let %v = A() { let %w = B(%v) { C(%v, %w) } }"), expected)
    nested = parse_expr("D(let %v = A() { B(%v) }, let %v = A() { B(%v) })")
    assert isinstance(nested, Call)
    assert nested.args[0] is not nested.args[1]


def test_names_end_with_their_scope() -> None:
    text = "if (A()) { %y = B(); %y } else { %y = C(); let %z = %y; fn (%w) { %w }(%z) }"
    assert isinstance(parse_expr(text), If)
    assert isinstance(parse_expr(f"%0 = {text}; %y = D(); %z = E(); %w = F(%y, %z); %w"), Call)


@each_case(
    ("text", "value"),
    [
        *(("1", 1), ("-7", -7), ("1180591620717411303424", 2**70), ("true", True), ("false", False)),
        *(("1.0", 1.0), ("1.", 1.0), ("-0.0", -0.0), ("1e-05", 1e-5), ("1e+22", 1e22), ("-2.5e3", -2500.0)),
        *(("inf", float("inf")), ("-inf", float("-inf")), ("nan", float("nan"))),
        *(('"a"', "a"), (r'"\"\\\n\u00e9"', '"\\\né'), ('""', ""), ('"// no comment"', "// no comment")),
        *(('b""', b""), (r'b"a\x00\xff\x22"', b'a\x00\xff"')),
        *(("[]", ()), ("[1]", (1,)), ('[1, [2.0, []], "a"]', (1, (2.0, ()), "a"))),
        *(("Tensor[(2, 3), float32]", F32), ("()", TupleType(())), ("fn () -> _", FuncType((), None))),
    ],
)
def test_attribute_values(text: str, value: AttrValue) -> None:
    expr = parse_expr(f'A(k={text}, "other key"=[{text}])')
    assert isinstance(expr, Call)
    assert expr.attrs == Attrs({"k": value, "other key": (value,)})


def test_constants_are_the_given_arrays_and_one_object_for_each_number() -> None:
    array = np.ones((2, 3), np.float32)
    expr = parse_expr("A(meta[Constant][1], meta[Constant][1], like=meta[Constant][1])", [np.zeros(1), array])
    assert isinstance(expr, Call)
    constant = expr.args[0]
    assert isinstance(constant, Constant)
    assert constant.data is array
    assert constant is expr.args[1] is expr.attrs["like"]


@pytest.mark.parametrize(
    ("text", "own_type"),
    [
        ("Tensor[(2, 3), float32]", F32),
        ("Tensor [ (2,3,), float32 ]", F32),
        ("Tensor[?, int8]", TensorType(None, F32.dtype.__class__("int8"))),
        ("()", TupleType(())),
        ("(Tensor[(), bool],)", TupleType((BOOL,))),
        ("((), (),)", TupleType((TupleType(()), TupleType(())))),
        ("fn (_, ()) -> _", FuncType((None, TupleType(())), None)),
        ("Sequence[Optional[Tensor[(), bool]]]", SequenceType(OptionalType(BOOL))),
    ],
)
def test_types(text: str, own_type: Type) -> None:
    assert parse_expr(f"A(): {text}").checked_type == own_type
    assert parse_expr(f"free_var %x: {text}; %x").checked_type == own_type
    function = parse_expr(f"fn () -> {text} {{ A() }}")
    assert function.checked_type == FuncType((), own_type)


def test_annotations() -> None:
    expr = parse_expr('A() @device(cpu:1, target="cpu -threads=2") @span("n", "m", "o")')
    assert expr.virtual_device == VirtualDevice(DeviceType.CPU, 1, Target("cpu -threads=2"))
    assert expr.span == Span("m", "n", "o")
    assert parse_expr('A() @span("n", "m")').span == Span("m", "n")
    inner = parse_expr("A((B @device(cpu))(): Tensor[(), bool], C())")
    assert isinstance(inner, Call)
    assert [arg.checked_type for arg in inner.args] == [BOOL, None]


def test_annotations_of_functions_and_lets_stand_in_their_head() -> None:
    function = parse_expr('fn () -> () attributes {k=1} @device(cpu) @span("n", "m") { A() }')
    assert function.virtual_device == VirtualDevice(DeviceType.CPU)
    assert function.checked_type == FuncType((), TupleType(()))
    let = parse_expr(
        'let: () @span("let", "m") %v: Tensor[(), bool] @span("var", "m") = A() @span("a", "m"); %v'
    )
    assert isinstance(let, Let)
    assert [e.span.node for e in (let, let.var, let.value) if e.span] == ["let", "var", "a"]
    assert (let.checked_type, let.var.checked_type) == (TupleType(()), BOOL)


def test_modules() -> None:
    mod = parse_module(
        """
        #[version = "0.1"]
        // A comment, then the attributes.
        #[attrs(name="m", opset=26)]
        def @main(%x /* the image */) {
          @helper(%x)  // defined below
        }
        def @helper(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { %x }
        """
    )
    assert mod.attrs == Attrs({"name": "m", "opset": 26})
    assert [v.name for v in mod] == ["main", "helper"]
    call = mod["main"].body
    assert isinstance(call, Call)
    assert call.op is mod.global_var("helper")
    assert call.op.checked_type == mod["helper"].checked_type == FuncType((F32,), F32)


def test_an_empty_module() -> None:
    assert structural_equal(parse_module(""), IRModule({}))


def test_recursive_functions() -> None:
    mod = parse_module("def @f(%x) { @f(%x) }")
    body = mod["f"].body
    assert isinstance(body, Call)
    assert body.op is mod.global_var("f")


def test_facts_of_constants_that_are_alike_are_shared() -> None:
    text = '(meta[Constant][0] @span("a", "m"), meta[Constant][0] @span("a", "m"), meta[Constant][0])'
    expr = parse_expr(text, [np.zeros(1)])
    assert isinstance(expr, Tuple)
    assert expr.fields[0] is expr.fields[1]
    assert expr.fields[1] is not expr.fields[2]


def test_types_that_are_stale_or_odd_round_trip() -> None:
    x = var()
    whole = Tuple((x, x), checked_type=TupleType((BOOL, BOOL)))
    odd: list[Expr] = [
        Function((x,), x, checked_type=FuncType((F32,), BOOL)),
        Function((x,), x, checked_type=FuncType((F32,), None)),
        Function((x,), x, checked_type=FuncType((BOOL,), F32)),
        Function((x,), x, checked_type=F32),
        Let(var("y"), x, x, checked_type=BOOL),
        TupleGetItem(whole, 1, checked_type=F32),
        Constant(np.zeros(1), checked_type=BOOL),
        Tuple((), checked_type=F32),
    ]
    for expr in odd:
        printed = print_expr(expr)
        assert_same_facts(expr, parse_expr(printed.text, printed.constants))


def test_unknown_types_come_back_unknown() -> None:
    x = Var("x")
    mod = IRModule.from_expr(Function((x,), If(x, call_of("A"), Tuple((x,)))))
    assert_same_program(mod, parse_module(print_module(mod).text))


def test_programs_are_read_one_at_a_time_by_several_threads() -> None:
    texts = [f"free_var %x; %y = A{n}(%x); " + f"%z{n} = B(%y); " + f"C(%z{n})" for n in range(8)]
    found: dict[int, Expr] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.__setitem__(n, parse_expr(texts[n])))
        for n in range(len(texts))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, text in enumerate(texts):
        assert structural_equal(found[number], parse_expr(text))


def test_expressions_of_every_kind_round_trip_inside_each_other() -> None:
    x, c = var("x"), var("c", BOOL)
    inner = Function((y := var("y"),), branch(c, Let(v := var("v"), relu(y), add(v, x)), ones()))
    expr = Function((x, c), Tuple((Call(inner, (x,), checked_type=F32), relu(x))))
    printed = print_expr(expr)
    assert structural_equal(parse_expr(printed.text, printed.constants), expr)
