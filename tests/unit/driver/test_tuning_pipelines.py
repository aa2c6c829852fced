"""Which passes a run of `tune` gets."""

from __future__ import annotations

import pytest

from intarsia.driver.tuning_pipelines import deciding_passes
from intarsia.passes import FoldConstant, InferType
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, Sequential, load_pass_sequence
from intarsia.tune.passes import TuneLayout, TuneRewrite
from intarsia.tune.strategy import Beam

DEFAULT = load_pass_sequence("default_tuning").passes
LAYOUT = TuneLayout((InferType(),), strategy=Beam(2))


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        (None, DEFAULT),
        ([], ()),
        (["TuneLayout{eval_passes=[InferType], strategy=Beam{width=2}}"], (LAYOUT,)),
        (["TuneRewrite, FoldConstant{max_bytes=3}", LAYOUT], (TuneRewrite(), FoldConstant(3), LAYOUT)),
        ("TuneRewrite, TuneLayout", (TuneRewrite(), TuneLayout())),
        (["default_tuning", "FoldConstant"], (*DEFAULT, FoldConstant())),
        ([Sequential([Sequential([TuneRewrite()]), InferType()])], (TuneRewrite(), InferType())),
        (["default_heuristic"], (load_pass_sequence("default_heuristic"),)),
    ],
    ids=["default", "none", "nested", "mixed", "one text", "pipeline", "sequences", "heuristics"],
)
def test_passes(passes: list[Pass | str] | str | None, expected: tuple[Pass, ...]) -> None:
    assert deciding_passes(None, passes) == expected


def test_a_pipeline_by_name() -> None:
    assert deciding_passes("default_tuning", None) == DEFAULT


def test_not_both() -> None:
    with pytest.raises(UsageError, match="give either a pipeline or passes"):
        deciding_passes("default_tuning", [])
