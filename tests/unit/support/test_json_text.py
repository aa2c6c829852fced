"""JSON that others wrote."""

from __future__ import annotations

import json

import pytest

from intarsia.ir.parser import parse_module
from intarsia.support.errors import ProgramTextError
from intarsia.support.json_text import parse_json_text

DEEP = "[" * 100_000 + "]" * 100_000


def test_it_is_parsed() -> None:
    assert parse_json_text('{"a": [1, null]}') == {"a": [1, None]}
    assert parse_json_text(b"2.5") == 2.5


@pytest.mark.parametrize("text", ["", "{", "[1,]", DEEP], ids=["empty", "open", "comma", "deep"])
def test_every_failure_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_json_text(text)
    assert isinstance(caught.value, json.JSONDecodeError) or text is DEEP


def test_a_deep_list_in_a_program_is_an_error_of_the_program() -> None:
    span = '@span("a", ' + DEEP + ")"
    with pytest.raises(ProgramTextError):
        parse_module(f'#[version = "0.1"]\ndef @main(%x: Tensor[(2,), float32] {span}) {{ %x }}')
