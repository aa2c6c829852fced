"""What passes say about a program, collected and shown."""

from __future__ import annotations

import pytest
from tests.ir_programs import add, module, relu, var
from tests.transform_passes import first

from intarsia.ir import Call, Function, IRModule, Span, with_fields
from intarsia.support.errors import UsageError
from intarsia.transform import (
    DiagnosticLevel,
    DiagnosticNote,
    PassContext,
    Sequential,
    function_pass,
    module_pass,
)
from intarsia.transform.instrument import Diagnostics, PassTimingInstrument


@function_pass(opt_level=0)
def speaks(function: Function, mod: IRModule, ctx: PassContext) -> Function:
    """Says of the result that its second argument is in the way."""
    result = function.body
    assert isinstance(result, Call)
    ctx.diagnose(result, DiagnosticLevel.REMARK, "was looked at")
    notes = [DiagnosticNote(result.args[1], "is the second argument")]
    ctx.diagnose(result, DiagnosticLevel.MISSED, "stays as it is", notes)
    return function


def program() -> IRModule:
    x = var()
    return module(x, body=add(x, with_fields(relu(x), span=Span("m.onnx", "act"))))


def collected(pattern: str = "") -> Diagnostics:
    diagnostics = Diagnostics(pattern)
    with PassContext(instruments=[diagnostics]):
        Sequential([first, speaks])(program())
    return diagnostics


def test_expressions_are_named_as_in_the_text_of_the_program() -> None:
    assert collected().render() == (
        "remark: speaks: Add %1 was looked at\n"
        "missed: speaks: Add %1 stays as it is\n"
        "  note: Relu %0 (node 'act') is the second argument"
    )


def test_as_plain_data() -> None:
    _, missed = collected().records()
    assert missed == {
        "pass": "speaks",
        "level": "missed",
        "text": "stays as it is",
        "operator": "Add",
        "name": "%1",
        "node": None,
        "notes": [{"text": "is the second argument", "operator": "Relu", "name": "%0", "node": "act"}],
    }


@pytest.mark.parametrize(
    ("pattern", "count"), [("", 2), ("missed", 1), ("^speaks: remark", 1), ("looked|stays", 2), ("other", 0)]
)
def test_a_pattern_chooses(pattern: str, count: int) -> None:
    assert len(collected(pattern).collected) == count


def test_a_pattern_that_is_none() -> None:
    with pytest.raises(UsageError, match="'\\(' is no regular expression"):
        Diagnostics("(")


def test_the_innermost_pass_speaks() -> None:
    @module_pass(opt_level=0)
    def around(mod: IRModule, ctx: PassContext) -> IRModule:
        mod = speaks(mod, ctx)
        ctx.diagnose(mod["main"], DiagnosticLevel.WARNING, "is odd")
        return mod

    diagnostics = Diagnostics()
    with PassContext(instruments=[diagnostics]):
        around(program())
    names = [item.diagnostic.pass_name for item in diagnostics.collected]
    assert names == ["speaks", "speaks", "around"]
    assert diagnostics.render().endswith("warning: around: Function @main is odd")


def test_the_same_statement_is_kept_once() -> None:
    diagnostics, mod = Diagnostics(), program()
    with PassContext(instruments=[diagnostics]):
        Sequential([speaks, speaks])(mod)
    assert len(diagnostics.collected) == 2


def test_nobody_has_to_take_diagnostics() -> None:
    assert not PassContext(instruments=[PassTimingInstrument()]).is_diagnosing
    assert PassContext(instruments=[Diagnostics()]).is_diagnosing
    speaks(program())
    assert Diagnostics().render() == ""
