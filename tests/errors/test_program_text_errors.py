import numpy as np
import pytest
from tests.each_case import each_case

from intarsia.ir.parser import parse_expr, parse_module
from intarsia.support.errors import ProgramTextError

MODULES = [
    (
        "def @main(%x) {\n  %0 = Relu(%x)\n  %0\n}",
        "line 3, column 3: found %0; expected ';'\n    %0\n    ^",
    ),
    (
        "def @main(%x) {\n  Add(%x, %y)\n}",
        "line 2, column 11: %y is not defined\n    Add(%x, %y)\n            ^",
    ),
    (
        "def @main(%input) {\n  Relu(%inptu)\n}",
        "line 2, column 8: %inptu is not defined\n    Relu(%inptu)\n         ^\nhelp: did you mean %input?",
    ),
    (
        "def @main(%x) {\n  @helpr(%x)\n}\ndef @helper(%x) { %x }",
        "line 2, column 3: @helpr is not defined\n    @helpr(%x)\n    ^\nhelp: did you mean @helper?",
    ),
    (
        "def @main(%x) { Add(%x, meta[Constant][1]) }",
        (
            "line 1, column 25: meta[Constant][1] is missing; the text comes with 1 constant\n"
            "  def @main(%x) { Add(%x, meta[Constant][1]) }\n"
            "                          ^"
        ),
    ),
    (
        "def @main(%x) {\n  %0 = Relu(%x);\n  %0 = Relu(%0);\n  %0\n}",
        "line 3, column 3: %0 is already defined in line 2\n    %0 = Relu(%0);\n    ^",
    ),
    (
        "def @main(%x, %x) { %x }",
        "line 1, column 15: %x is already defined in line 1\n  def @main(%x, %x) { %x }\n                ^",
    ),
    (
        "def @f() { () }\ndef @f() { () }",
        "line 2, column 5: @f is already defined in line 1\n  def @f() { () }\n      ^",
    ),
    (
        "def @main(",
        "line 1, column 11: the text ends; expected ')' or a %name\n  def @main(\n            ^",
    ),
    (
        "hello",
        (
            "line 1, column 1: found hello; expected "
            "#[attrs(...)], #[version = ...], def or the end of the text\n"
            "  hello\n  ^"
        ),
    ),
    (
        '#[version = "0.9"]\ndef @main() { () }',
        (
            'line 1, column 13: the text is of version "0.9"; expected "0.1"\n'
            '  #[version = "0.9"]\n              ^'
        ),
    ),
    (
        "def @main(%x: Tensor[(2), float31]) { %x }",
        (
            "line 1, column 13: Tensor[(2), float31] is not a tensor type: unknown element type float31\n"
            "  def @main(%x: Tensor[(2), float31]) { %x }\n              ^"
        ),
    ),
    (
        "def @main(%x: Tensor[(2, -1), int8]) { %x }",
        (
            "line 1, column 13: Tensor[(2, -1), int8] is not a tensor type: "
            "expected a number, a name or ? as dimension 1\n"
            "  def @main(%x: Tensor[(2, -1), int8]) { %x }\n              ^"
        ),
    ),
    (
        "def @main(%x: (Tensor[2, int8],)) { %x }",
        (
            "line 1, column 16: Tensor[2, int8] is not a tensor type: "
            "expected Tensor[(1, 3, n), float32] or Tensor[?, float32]\n"
            "  def @main(%x: (Tensor[2, int8],)) { %x }\n                 ^"
        ),
    ),
    (
        "def @main(%x: float32) { %x }",
        (
            "line 1, column 15: found float32; expected a type\n"
            "  def @main(%x: float32) { %x }\n                ^"
        ),
    ),
]
EXPRESSIONS = [
    (
        "Relu(1)",
        "line 1, column 6: found 1; expected an expression or ')'\n  Relu(1)\n       ^",
    ),
    (
        "Cast(to=)",
        "line 1, column 9: found ); expected a value\n  Cast(to=)\n          ^",
    ),
    (
        "Cast(to=1, to=2)",
        "line 1, column 12: attribute to is given twice\n  Cast(to=1, to=2)\n             ^",
    ),
    (
        "Cast(to=1, ())",
        "line 1, column 12: found (; expected a name\n  Cast(to=1, ())\n             ^",
    ),
    (
        "fn (%x) { %x: Tensor[(), bool] }",
        (
            "line 1, column 13: an expression is annotated where it is defined; "
            "found a name or an annotated one\n"
            "  fn (%x) { %x: Tensor[(), bool] }\n              ^"
        ),
    ),
    (
        "Relu() @device(tpu:0)",
        (
            "line 1, column 8: 'VirtualDevice(tpu:0)' is not a virtual device: unknown device kind 'tpu'\n"
            "  Relu() @device(tpu:0)\n         ^\nhelp: did you mean cpu?"
        ),
    ),
    (
        'Relu() @span("a")',
        (
            'line 1, column 8: @span("a") is not a span: expected two or three strings\n'
            '  Relu() @span("a")\n         ^'
        ),
    ),
    (
        r'A(name="\q")',
        (
            'line 1, column 8: "\\q" is not a string: Invalid \\escape: line 1 column 2 (char 1)\n'
            '  A(name="\\q")\n         ^'
        ),
    ),
    (
        'A(raw=b"é")',
        (
            'line 1, column 7: b"é" is not bytes: bytes can only contain ASCII literal characters\n'
            '  A(raw=b"é")\n        ^'
        ),
    ),
    (
        "Relu(%x",
        "line 1, column 6: %x is not defined\n  Relu(%x\n       ^",
    ),
    (
        "",
        "line 1, column 1: the text ends; expected a statement or an expression\n  \n  ^",
    ),
    (
        "if (()) { () }",
        "line 1, column 15: the text ends; expected else\n  if (()) { () }\n                ^",
    ),
    (
        "%0 = &",
        "line 1, column 6: found &; expected an expression\n  %0 = &\n       ^",
    ),
    (
        "{ () }",
        "line 1, column 1: found {; expected a statement or an expression\n  { () }\n  ^",
    ),
]


@each_case(("text", "message"), MODULES)
def test_errors_in_programs(text: str, message: str) -> None:
    with pytest.raises(ProgramTextError) as caught:
        parse_module(text, [np.zeros(1, np.float32)])
    assert str(caught.value) == message


@each_case(("text", "message"), EXPRESSIONS)
def test_errors_in_expressions(text: str, message: str) -> None:
    with pytest.raises(ProgramTextError) as caught:
        parse_expr(text)
    assert str(caught.value) == message


def test_of_a_long_line_only_the_part_around_the_error_is_shown() -> None:
    args = ", ".join(["()"] * 200)
    with pytest.raises(ProgramTextError) as caught:
        parse_expr(f"Concat({args}, %x, {args})")
    _, line, caret = str(caught.value).splitlines()
    assert len(line) <= 105
    assert line[caret.index("^") :].startswith("%x")


def test_a_failed_parse_leaves_nothing_behind() -> None:
    with pytest.raises(ProgramTextError):
        parse_expr("%x = Relu(()); let %y = %x; Relu(%z)")
    with pytest.raises(ProgramTextError, match="%y is not defined"):
        parse_expr("%x = Relu(()); %y")
