"""What the text of passes looks like."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.transform_passes import AppendRelu, add_abs

from intarsia.ir import IRModule
from intarsia.passes import FoldConstant, InferType
from intarsia.support.errors import UsageError
from intarsia.transform import ModulePass, PassContext, Sequential, get_pass
from intarsia.transform.pass_syntax.read_passes import read_passes
from intarsia.transform.pass_text import construct_text, option_text, pass_text
from intarsia.transform.pass_trace import plain_options
from intarsia.tune.passes import TuneLayout
from intarsia.tune.strategy import Beam, SearchLimits


@dataclass(frozen=True)
class WithObject(ModulePass, opt_level=0):
    """A pass with an option that is no data."""

    what: object = None

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod


def test_options_as_by_default_are_left_out() -> None:
    assert pass_text(AppendRelu()) == "AppendRelu"
    assert pass_text(AppendRelu(3)) == "AppendRelu{times=3}"
    assert pass_text(add_abs) == "add_abs"
    limits = SearchLimits(5)
    assert pass_text(TuneLayout((InferType(),), strategy=Beam(2), limits=limits)) == (
        "TuneLayout{eval_passes=[InferType], strategy=Beam{width=2}, limits=SearchLimits{trials=5}}"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (1e-5, "1e-05"),
        (float("inf"), "inf"),
        ("a\n\"b'", '"a\\n\\"b\'"'),
        ((1, ("x",)), '[1, ["x"]]'),
        (frozenset("ba"), '["a", "b"]'),
        (complex(1, 2), "<complex (1+2j)>"),
        ({"a": 1}, '[["a", 1]]'),
    ],
)
def test_values(value: object, text: str) -> None:
    assert option_text(value) == text


def test_a_sequence_is_broken_into_lines() -> None:
    row = Sequential([Sequential([AppendRelu(2)], name="inner"), add_abs], name="outer")
    assert str(row) == (
        'Sequential{name="outer", passes=[Sequential{name="inner", passes=[AppendRelu{times=2}]}, add_abs]}'
    )
    assert pass_text(row, 40).splitlines() == [
        "Sequential{",
        '  name="outer",',
        "  passes=[",
        "    Sequential{",
        '      name="inner",',
        "      passes=[AppendRelu{times=2}]",
        "    },",
        "    add_abs",
        "  ]",
        "}",
    ]
    assert read_passes(pass_text(row := Sequential([FoldConstant(3)] * 9), 20)) == (row,)


def test_a_registered_sequence_is_its_name() -> None:
    assert option_text((get_pass("FoldScaleAxis"),)) == "[FoldScaleAxis]"


def test_recorded_options_are_printed_like_passes() -> None:
    item = TuneLayout((FoldConstant(3), Sequential([InferType()], name="row")), strategy=Beam(2))
    text = construct_text("TuneLayout", plain_options(item))
    assert text.startswith(
        'TuneLayout{eval_passes=[FoldConstant{max_bytes=3}, Sequential{name="row", passes=[InferType]}], '
        "strategy=Beam{width=2}, "
    )
    assert get_pass(text) == item


def test_what_is_no_data_is_no_text() -> None:
    text = str(WithObject(complex(1, 2)))
    assert text == "WithObject{what=<complex (1+2j)>}"
    with pytest.raises(UsageError, match="a value between angle brackets cannot be read"):
        read_passes(text)


def test_equal_sequences_have_equal_texts_in_digests() -> None:
    def row() -> Sequential:
        return Sequential([FoldConstant(3)], name="row")

    assert row() == row()
    assert hash(row()) == hash(row())
    assert repr(row()) == repr(row()) == 'Sequential{name="row", passes=[FoldConstant{max_bytes=3}]}'
    assert row() != Sequential([FoldConstant(3)], name="column")
    assert row() != FoldConstant(3)
