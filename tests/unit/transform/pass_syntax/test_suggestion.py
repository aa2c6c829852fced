"""What may follow an unfinished text of passes."""

from __future__ import annotations

from tests.each_case import each_case

from intarsia.transform import pass_names, pipeline_names
from intarsia.transform.pass_syntax.suggestion import suggest_passes

NOTHING: list[str] = []


@each_case(
    ("text", "words"),
    [
        ("FoldC", ["FoldConstant"]),
        ("default_tun", ["default_tuning"]),
        ("InferType,FoldC", ["FoldConstant"]),
        ("InferType, FoldC", ["FoldConstant"]),
        ("TuneLayout{la", ["layouts="]),
        ("FoldConstant{", ["max_bytes="]),
        ("FoldConstant{max_bytes=", NOTHING),
        ("FoldConstant{max_bytes=3", NOTHING),
        ("TuneLayout{strategy=B", ["Beam"]),
        ("TuneLayout{strategy=Beam{", ["width="]),
        ("TuneLayout{eval_passes=", ["["]),
        ("TuneLayout{eval_passes=[InferType,TuneLayout{eval_passes=[FoldC", ["FoldConstant"]),
        ("TuneLayout{eval_passes=[InferType,TuneLayout{layouts=[a]}],la", ["layouts="]),
        ("TunePlacement{toolchain_passes=[[native,[FoldC", ["FoldConstant"]),
        ("Inline{literals=", ["True", "False"]),
        ("FuseOps{max_depth=", ["None"]),
        ("Sequential{pas", ["passes="]),
        ("Sequential{passes=[FoldC", ["FoldConstant"]),
        ("TuneLayout{layouts=[N", NOTHING),
        ('ConvertLayout{layout="N', NOTHING),
        ("Unknown{", NOTHING),
        ("FoldConstant ", NOTHING),
        ("FoldConstant}", NOTHING),
        ("]}FoldC", NOTHING),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    base = text[: cut(text)]
    assert suggest_passes(text) == [base + word for word in words]


def cut(text: str) -> int:
    """Index behind the last mark or space."""
    return max(text.rfind(mark) for mark in "{}[]=, ") + 1


def test_anything_may_begin_a_text() -> None:
    assert set(suggest_passes("")) == {*pass_names(), *pipeline_names(), "Sequential"}


def test_given_options_are_not_suggested_again() -> None:
    suggested = suggest_passes("TuneLayout{layouts=[a],")
    assert "TuneLayout{layouts=[a],strategy=" in suggested
    assert "TuneLayout{layouts=[a],layouts=" not in suggested
