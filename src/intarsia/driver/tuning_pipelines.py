"""The named sequences of tuning passes (seed relax_pass_infra, D5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.collage.tune_placement import TunePlacement
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, Sequential, get_pass, load_pass_sequence, register_pipeline
from intarsia.tune.passes import (
    TuneCombineParallel,
    TuneConvolutions,
    TuneFlags,
    TuneLayout,
    TunePipeline,
    TuneRewrite,
    TuneSubgraphs,
)
from intarsia.tune.strategy import SearchLimits

DEFAULT: Final = "default_tuning"
"""What `tune` runs."""

_TRIALS_OF_A_PART: Final = 16
"""Rewrites that are tried on a part that occurs often."""


@register_pipeline(DEFAULT)
def default_tuning() -> Sequential:
    """Decisions on the program that are soon measured, one after the other."""
    few = SearchLimits(trials=_TRIALS_OF_A_PART)
    in_parts = TuneSubgraphs(passes=(TuneCombineParallel(), TuneRewrite(limits=few)))
    on_program = [TuneCombineParallel(), TuneRewrite(), TuneLayout(), TuneConvolutions()]
    return Sequential([TunePipeline(), in_parts, *on_program])


@register_pipeline("experiment_tuning")
def experiment_tuning() -> Sequential:
    """Decisions jointly, made anew for each candidate of those before, and placement: it takes long."""
    joint = TuneCombineParallel(eval_passes=(TuneLayout(),))
    placed = TunePlacement(placed_passes=(TuneFlags(),))
    return Sequential([TunePipeline(eval_passes=(joint,)), TuneRewrite(), placed])


def deciding_passes(pipeline: str | None, passes: Sequence[Pass | str] | None) -> tuple[Pass, ...]:
    """The passes of a pipeline, or those that are given; those of the default pipeline if nothing is.

    Args:
        pipeline: Name of a sequence.
        passes: Passes, or their names.

    Raises:
        UsageError: Both are given, or there is nothing of a name.
    """
    if passes is not None:
        if pipeline is not None:
            raise UsageError("give either a pipeline or passes", help="a pipeline is a sequence of passes")
        return tuple(get_pass(each) if isinstance(each, str) else each for each in passes)
    return tuple(load_pass_sequence(pipeline or DEFAULT).passes)
