"""Showing programs between passes."""

import contextlib
import io

import pytest
from tests.ir_programs import module, relu, var

from intarsia.ir import Span, structural_equal, with_fields
from intarsia.ir.parser import parse_module
from intarsia.passes import PrintIR
from intarsia.transform import Sequential

X = var()
MOD = module(X, body=with_fields(relu(X), span=Span("node", "model.onnx", "Relu")))


def test_the_text_can_be_parsed_and_the_module_is_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert PrintIR()(MOD) is MOD
    assert structural_equal(parse_module(capsys.readouterr().out), MOD)


def test_the_header_is_a_comment(capsys: pytest.CaptureFixture[str]) -> None:
    PrintIR(header="after fusion\nsecond line")(MOD)
    text = capsys.readouterr().out
    assert text.startswith("# after fusion\n# second line\n#[version")
    assert text.endswith("}\n")


def test_facts_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    PrintIR()(MOD)
    assert "@span" in capsys.readouterr().out
    PrintIR(show_types=False, show_spans=False)(MOD)
    text = capsys.readouterr().out
    assert "@span" not in text
    assert "%0 = Relu(%x);" in text


def test_it_writes_to_where_standard_output_is_redirected() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        Sequential([PrintIR(header="first"), PrintIR(header="second")])(MOD)
    assert stream.getvalue().count("def @main") == 2
