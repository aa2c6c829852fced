"""The named sequences of tuning passes (seed relax_pass_infra, D5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from intarsia.collage.tune_placement import TunePlacement
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, Sequential, load_pass_sequence, read_passes, register_pipeline
from intarsia.tune.heuristic_pass import FeedbackPass
from intarsia.tune.passes import (
    TuneChannelBlocks,
    TuneCombineParallel,
    TuneConvolutions,
    TuneFlags,
    TuneFusionBorders,
    TuneKernelThreads,
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
    on_kernels = [TuneChannelBlocks(), TuneKernelThreads(), TuneFusionBorders()]
    return Sequential([TunePipeline(), in_parts, *on_program, *on_kernels])


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
        passes: Passes or texts of passes ("TuneLayout{layouts=[NHWC]}"), one such text, or None.

    Raises:
        UsageError: Both are given, or a text cannot be read.
    """
    if passes is not None:
        if pipeline is not None:
            raise UsageError("give either a pipeline or passes", help="a pipeline is a sequence of passes")
        return tuple(_in_a_row(_read(passes)))
    return tuple(load_pass_sequence(pipeline or DEFAULT).passes)


def _read(passes: Sequence[Pass | str]) -> Iterator[Pass]:
    for item in [passes] if isinstance(passes, str) else passes:
        yield from read_passes(item) if isinstance(item, str) else (item,)


def _in_a_row(passes: Iterable[Pass]) -> Iterator[Pass]:
    """Yield the passes inside of sequences that decide: time is divided among the passes of one row."""
    for item in passes:
        if isinstance(item, Sequential) and any(
            isinstance(inner, FeedbackPass) for inner in item.flattened()
        ):
            yield from _in_a_row(item.passes)
        else:
            yield item
