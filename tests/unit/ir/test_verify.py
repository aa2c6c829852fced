import pytest
from tests.each_case import each_case
from tests.ir_programs import BOOL, F32, add, branch, chain, module, ones, relu, var

from intarsia.ir import (
    Attrs,
    Call,
    Function,
    GlobalVar,
    IRModule,
    Let,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    with_fields,
)
from intarsia.ir.parser import parse_module
from intarsia.ir.verify import verify
from intarsia.support.errors import VerifyError
from intarsia.target import DeviceType, VirtualDevice

T = "Tensor[(2, 3), float32]"


def complaints(mod: IRModule, require_types: bool = False) -> list[str]:
    """The complaints about a program, in the order of its text."""
    try:
        verify(mod, require_types=require_types)
    except VerifyError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        found = [number for number, line in enumerate(lines) if line.startswith("// ^")]
        assert found
        return [lines[number].removeprefix("// ^ ") for number in found]
    return []


def of(text: str) -> list[str]:
    return complaints(parse_module(text))


def test_a_program_that_keeps_the_rules() -> None:
    x, c, y = var("x"), var("c", BOOL), var("y")
    shared = relu(x)
    closed = Function((y,), relu(y), Attrs({"Compiler": "a", "target": "cpu -toolchain=a"}))
    called = Call(closed, (shared,), checked_type=F32, virtual_device=VirtualDevice(DeviceType.CPU))
    body = branch(c, Let(z := var("z"), called, add(z, x)), shared)
    verify(module(x, c, body=Tuple((body, TupleGetItem(Tuple((x, shared)), 1)))), require_types=True)


def test_what_is_unknown_is_no_complaint() -> None:
    assert of("def @main(%x) { (%x.7, if (%x) { %x } else { () }, %x(), A(%x)) }") == []


def test_free_variables() -> None:
    assert complaints(module(body=add(z := var("z"), z))) == ["free variable %z"]
    assert complaints(module(body=var("z"))) == ["free variable %z"]


def test_variables_bound_twice() -> None:
    x = var()
    assert complaints(module(x, body=Let(x, ones(), relu(x)))) == ["bound a second time: %x"]
    assert complaints(module(x, x, body=x)) == ["bound a second time: %x"]
    twice = Tuple((Function((x,), x), Function((x,), relu(x))))
    assert "bound a second time: %x" in complaints(module(body=twice))


def test_a_shared_function_binds_its_parameters_once() -> None:
    x, y = var("x"), var("y")
    function = Function((y,), relu(y))
    assert complaints(module(x, body=add(Call(function, (x,), checked_type=F32), Call(function, (x,))))) == []


def test_functions_of_a_module_may_share_variables() -> None:
    function = Function((x := var(),), relu(x))
    assert complaints(IRModule({GlobalVar("f"): function, GlobalVar("g"): function})) == []


def test_variables_outside_their_scope() -> None:
    x, y = var("x"), var("y")
    let = Let(y, x, relu(y))
    assert complaints(module(x, body=add(let, y))) == ["used outside its scope: %y"]
    assert complaints(module(x, body=Let(y, relu(y), x))) == ["used outside its scope: %y"]
    shared = relu(y)
    assert complaints(module(x, body=add(Let(y, x, shared), shared))) == ["used outside its scope: %y"]
    c = var("c", BOOL)
    assert complaints(module(x, c, body=branch(c, Let(y, x, y), y))) == ["used outside its scope: %y"]


def test_unknown_global_functions() -> None:
    missing = Call(GlobalVar("a b"), (GlobalVar("f"),))
    assert complaints(module(body=missing)) == [
        'unknown global function @"a b"',
        "unknown global function @f",
    ]


@each_case(
    ("text", "complaint"),
    [
        ("%x.0", f"a field is taken of a value of type {T}; expected a tuple"),
        ("(%x, %c).2", "field 2 of a tuple of 2 does not exist"),
        ("(%x, %c).0: Tensor[(), bool]", f"field 0 is {T}; expected Tensor[(), bool]"),
        ("if (%x) { () } else { () }", f"the condition is {T}; expected one boolean"),
        ("if (()) { () } else { () }", "the condition is (); expected one boolean"),
        (
            "if (%c) { %x } else { () }: Tensor[(2, ?), float32]",
            "the value of the second branch is (); expected Tensor[(2, ?), float32]",
        ),
        ("if (%c) { () } else { %x }: (Tensor[(), bool],)", None),
        ("%x()", f"a value of type {T} is called; expected a function"),
        ("fn (%y) { %y }()", "found 0 as the number of arguments; expected 1"),
        (
            f"fn (%y: {T}) {{ %y }}(%c)",
            f"argument 0 is Tensor[(), bool]; expected {T}",
        ),
        (
            f"fn (%y: {T}) {{ %y }}(%x): Tensor[(), bool]",
            f"the function's result is {T}; expected Tensor[(), bool]",
        ),
        ("@main(%x)", "found 1 as the number of arguments; expected 2"),
        ("let %v: Tensor[(), bool] = %x { %v }", f"the value is {T}; expected Tensor[(), bool]"),
        ("let: Tensor[(), bool] %v = %c { %x }", f"the body is {T}; expected Tensor[(), bool]"),
        (
            "(%x, %x): (Tensor[(), bool], _)".replace(", _", f", {T}"),
            f"field 0 is {T}; expected Tensor[(), bool]",
        ),
        ("(%x, %x): ()", "a tuple of 2 fields is annotated ()"),
        ("fn () -> () { %x }", f"the function is fn () -> {T}; expected fn () -> ()"),
    ],
)
def test_types(text: str, complaint: str | None) -> None:
    found = of(f"def @main(%x: {T}, %c: Tensor[(), bool]) {{ ({text}, %c) }}")
    assert (complaint is None and len(found) == 2) or complaint in found


@pytest.mark.parametrize("shape", ["()", "(1,)", "(1, 1)", "(n,)", "(?, 1)"])
def test_conditions_of_one_element(shape: str) -> None:
    assert of(f"def @main(%c: Tensor[{shape}, bool]) {{ if (%c) {{ () }} else {{ () }} }}") == []


@pytest.mark.parametrize("own_type", ["Tensor[(2,), bool]", "Tensor[(0,), bool]", "Tensor[(), uint8]"])
def test_other_conditions(own_type: str) -> None:
    found = of(f"def @main(%c: {own_type}) {{ if (%c) {{ () }} else {{ () }} }}")
    assert found == [f"the condition is {own_type}; expected one boolean"]


def test_operators_are_left_to_the_given_check() -> None:
    seen: list[str] = []

    def check(call: Call) -> str | None:
        seen.append(str(call.op))
        return "wrong" if str(call.op) == "Add" else None

    mod = module(x := var(), body=Tuple((add(x, x), relu(x), Call(Function((), x), ()))))
    with pytest.raises(VerifyError, match="%0 = Add") as caught:
        verify(mod, check)
    assert str(caught.value).count("// ^ wrong") == 1
    assert sorted(seen) == ["Add", "Relu"]


def test_types_that_are_required() -> None:
    mod = module(x := Var("x"), body=Tuple((Call(relu(x).op, (x,)), ones())))
    assert complaints(mod) == []
    assert complaints(mod, require_types=True) == ["the type is unknown"] * 3


@pytest.mark.parametrize("attribute", ["Compiler", "Primitive"])
def test_closed_functions(attribute: str) -> None:
    x, y = var("x"), var("y")
    outside = relu(x)
    for captured, name in ((x, "%x"), (outside, "%0")):
        function = Function((y,), add(y, captured), Attrs({attribute: "a"}))
        found = complaints(module(x, body=add(Call(function, (outside,), checked_type=F32), outside)))
        assert found == [f"a function with {attribute} must not use what is outside of it: {name}"]
        opened = with_fields(function, attrs=Attrs({}))
        assert complaints(module(x, body=add(Call(opened, (outside,), checked_type=F32), outside))) == []


def test_closed_functions_may_use_constants_and_hold_other_functions() -> None:
    x, y, z = var("x"), var("y"), var("z")
    inner = Function((z,), add(z, y))
    function = Function((y,), add(Call(inner, (y,), checked_type=F32), ones()), Attrs({"Compiler": "a"}))
    assert complaints(module(x, body=Call(function, (x,), checked_type=F32))) == []


def test_devices_of_compiled_functions() -> None:
    x, y = var("x"), var("y")
    cuda = VirtualDevice(DeviceType.CUDA)
    function = Function((y,), relu(y), Attrs({"Compiler": "a", "target": "cpu -toolchain=a"}))
    call = Call(function, (x,), checked_type=F32, virtual_device=cuda)
    complaint = 'is on cuda, but the function is compiled for "cpu -toolchain=a"'
    assert complaints(module(x, body=call)) == [f"the call {complaint}"]
    moved = with_fields(function, virtual_device=cuda)
    assert complaints(module(x, body=with_fields(call, op=moved))) == [
        f"the function {complaint}",
        f"the call {complaint}",
    ]
    mod = IRModule(
        {GlobalVar("main"): Function((x,), with_fields(call, op=GlobalVar("f"))), GlobalVar("f"): function}
    )
    assert complaints(mod) == [f"the call {complaint}"]
    plain = with_fields(function, attrs=Attrs({"target": "cpu"}))
    assert complaints(module(x, body=with_fields(call, op=plain))) == []


def test_a_target_that_is_none() -> None:
    function = Function((), ones(), Attrs({"Compiler": "a", "target": "tpu"}))
    assert complaints(IRModule.from_expr(function)) == [
        "the function's target is wrong: unknown device kind 'tpu'"
    ]


def test_every_complaint_stands_below_its_statement() -> None:
    mod = parse_module("def @main(%x: Tensor[(2,), bool]) { if (%x) { () } else { () } }\ndef @f() { ().0 }")
    with pytest.raises(VerifyError) as caught:
        verify(mod)
    assert str(caught.value) == (
        "the program breaks the rules of the language in 2 places:\n"
        '#[version = "0.1"]\n'
        "def @main(%x: Tensor[(2,), bool]) {\n"
        "  %0 = if (%x) {\n"
        "  // ^ the condition is Tensor[(2,), bool]; expected one boolean\n"
        "    ()\n"
        "  } else {\n"
        "    ()\n"
        "  };\n"
        "  %0\n"
        "}\n"
        "\n"
        "def @f() {\n"
        "  %0 = ().0;\n"
        "  // ^ field 0 of a tuple of 0 does not exist\n"
        "  %0\n"
        "}"
    )


def test_of_a_large_program_only_the_surroundings_are_shown() -> None:
    x = var()
    middle = Call(GlobalVar("f"), (chain(500, x),), checked_type=F32)
    with pytest.raises(VerifyError) as caught:
        verify(module(x, body=chain(500, middle)))
    lines = str(caught.value).splitlines()
    assert lines[0] == "the program breaks the rules of the language in 1 place:"
    assert [lines[1], lines[-1]] == ["...", "..."]
    assert lines[5].startswith("  %500 = @f(%499)")
    assert lines[6] == "  // ^ unknown global function @f"
    assert len(lines) == 11


def test_only_the_first_complaints_are_shown() -> None:
    calls = Tuple(tuple(Call(GlobalVar("f"), ()) for _ in range(30)))
    with pytest.raises(VerifyError) as caught:
        verify(module(body=calls))
    assert str(caught.value).startswith(
        "the program breaks the rules of the language in 30 places (the first 20 are shown):\n"
    )
    assert str(caught.value).count("// ^") == 20


def test_tuples_of_unknown_types() -> None:
    x = Var("x")
    assert complaints(module(x, body=Tuple((x,), checked_type=TupleType((F32,))))) == []
