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
    TuneLibraries,
    TunePipeline,
    TuneRewrite,
    TuneSubgraphs,
)
from intarsia.tune.strategy import SearchLimits

DEFAULT: Final = "default_tuning"
"""Name of the pipeline that `tune` runs by default."""

_TRIALS_OF_A_PART: Final = 16
"""Maximum number of rewrites that are tried on a repeated subgraph."""


@register_pipeline(DEFAULT)
def default_tuning() -> Sequential:
    """Return the passes with cheap decisions, one after the other."""
    few = SearchLimits(trials=_TRIALS_OF_A_PART)
    in_parts = TuneSubgraphs(passes=(TuneCombineParallel(), TuneRewrite(limits=few)))
    on_program = [TuneCombineParallel(), TuneRewrite(), TuneLayout(), TuneConvolutions(), TuneLibraries()]
    return Sequential([TunePipeline(), in_parts, *on_program])


@register_pipeline("experiment_tuning")
def experiment_tuning() -> Sequential:
    """Return passes with nested decisions, and placement: thorough, but slow."""
    joint = TuneCombineParallel(eval_passes=(TuneLayout(),))
    placed = TunePlacement(placed_passes=(TuneFlags(),))
    return Sequential([TunePipeline(eval_passes=(joint,)), TuneRewrite(), placed])


def deciding_passes(pipeline: str | None, passes: Sequence[Pass | str] | None) -> tuple[Pass, ...]:
    """Return the passes of a pipeline, or the given passes; by default those of the default pipeline.

    Args:
        pipeline: Name of a pipeline, or None.
        passes: Passes or their names, or None.

    Raises:
        UsageError: Both are given, or a name is unknown.
    """
    if passes is not None:
        if pipeline is not None:
            raise UsageError("give either a pipeline or passes", help="a pipeline is a sequence of passes")
        return tuple(get_pass(item) if isinstance(item, str) else item for item in passes)
    return tuple(load_pass_sequence(pipeline or DEFAULT).passes)
