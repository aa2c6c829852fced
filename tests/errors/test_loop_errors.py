import pytest
from tests.each_case import each_case
from tests.ir_programs import relu, var
from tests.loop_programs import scale

from intarsia.build import build
from intarsia.frontend.onnx import to_onnx
from intarsia.ir import Function, GlobalVar, IRModule
from intarsia.ir.parser import parse_module
from intarsia.op import infer_types
from intarsia.support.errors import IntarsiaError, ProgramTextError, UnsupportedModelError, UsageError

X = "x: Buffer[(4,), float32]"
TEXTS = [
    ("def prim @f() { y[0] = 1f32; }", 17, "there is no buffer y here"),
    (f"def prim @f({X}) {{ x[i] = 1f32; }}", 43, "there is no loop variable i here"),
    (f"def prim @f({X}, {X}) {{ }}", 39, "the buffer x is already defined in line 1"),
    ("def prim @f() { for i in 2 { for i in 2 { } } }", 34, "the loop of line 1 has the variable i already"),
    (
        "def prim @f(x: Buffer[4, float32]) { }",
        16,
        "Buffer[4, float32] is not a buffer type: expected Buffer[(4, 8), float32]",
    ),
    (
        "def prim @f(x: Buffer[(4,), float33]) { }",
        16,
        "Buffer[(4,), float33] is not a buffer type: unknown element type float33",
    ),
    (
        f"def prim @f({X}) {{ x[0] = 0.5; }}",
        48,
        "0.5 is not a number: a number that is not whole needs a type, such as 0.5f32",
    ),
    (f"def prim @f({X}) {{ x[0] = 1f32 }}", 53, "found }; expected ';'"),
    (f"def prim @f({X}) {{ x[0] = ; }}", 48, "found ;; expected a scalar"),
    (f"def prim @f({X}) {{ x[0] = -x[0]; }}", 48, "found -; expected a scalar"),
    ("def prim @f() { while }", 23, "found }; expected '['"),
    ("def prim @f() { 7 }", 17, "found 7; expected a statement or '}'"),
    ("def prim @f() { for sideways i in 3 { } }", 30, "found i; expected in"),
    ("def prim f() { }", 10, "found f; expected a @name"),
    ("def prim @f() { }\ndef prim @f() { }", 0, "@f is already defined in line 1"),
]


@each_case(("text", "column", "problem"), TEXTS)
def test_loop_text_that_does_not_parse(text: str, column: int, problem: str) -> None:
    with pytest.raises(ProgramTextError) as caught:
        parse_module(text)
    line = text.count("\n") + 1
    shown, column = text.rpartition("\n")[2], column or 10
    assert str(caught.value) == f"line {line}, column {column}: {problem}\n  {shown}\n  {' ' * (column - 1)}^"


def test_a_name_that_is_almost_right() -> None:
    with pytest.raises(ProgramTextError, match=r"help: did you mean input\?$"):
        parse_module("def prim @f(input: Buffer[(), bool]) { input[] = inptu[]; }")


def test_an_intrinsic_without_arguments_has_no_type() -> None:
    with pytest.raises(ProgramTextError) as caught:
        parse_module("def prim @f(x: Buffer[(), float32]) { x[] = random(); }")
    assert caught.value.help == "write random[float32](...)"


LOOPS = IRModule({GlobalVar("main"): Function((var(),), relu(var())), GlobalVar("scale"): scale()})


def test_a_loop_function_is_no_graph_function() -> None:
    with pytest.raises(UsageError) as caught:
        LOOPS["scale"]
    assert str(caught.value) == '@scale is a loop function\nhelp: use .prim_func("scale")'


def test_a_graph_function_is_no_loop_function() -> None:
    with pytest.raises(UsageError) as caught:
        LOOPS.prim_func("main")
    assert str(caught.value) == '@main is a graph function\nhelp: use module["main"]'


CALLING = """
def @main(%x: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] {
  %0 = Relu(%x);
  @scale(%0): Tensor[(4, 8), float32]
}
def prim @scale(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) { }
"""
MARKED = CALLING.replace("float32] {", 'float32] attributes {Compiler="reference"} {', 1)
MAIN = "def prim @main() { }"


@pytest.mark.parametrize(("text", "name"), [(CALLING, "scale"), (MAIN, "main")])
def test_a_loop_function_cannot_be_built_yet(text: str, name: str) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        build(infer_types(parse_module(text)))
    assert str(caught.value) == f"@{name} is a loop function; loop functions need the native toolchain"


def test_a_loop_function_cannot_be_exported() -> None:
    with pytest.raises(UnsupportedModelError, match="@scale is a loop function; ONNX has none"):
        to_onnx(infer_types(parse_module(CALLING)))
    with pytest.raises(IntarsiaError, match="@scale is a loop function; ONNX has none"):
        build(infer_types(parse_module(MARKED)))
