"""The named sequences of tuning passes (seed relax_pass_infra, D5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from intarsia.autoschedule.tuning.tune_schedule import TuneSchedule
from intarsia.collage.tune_placement import TunePlacement
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.toolchain.native.toolchain import Native
from intarsia.transform import Pass, Sequential, load_pass_sequence, read_passes, register_pipeline
from intarsia.tune.heuristic_pass import FeedbackPass
from intarsia.tune.passes import (
    TuneCombineParallel,
    TuneFlags,
    TuneKernelsJointly,
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


REWRITE_GAIN: Final = 0.002
"""Share of the time that first trials of rewriting the program are expected to save.

native simplifies programs itself. Of the 17 models of docs/benchmarks.md ("Tuning passes") the passes made
one faster in 60 seconds, by 1.8 %: 0.1 % at the mean. Passes on kernels have no such expectation: they time
kernels first, and try nothing that cannot pay."""


@register_pipeline(DEFAULT)
def default_tuning() -> Sequential:
    """Return the passes with cheap decisions, one after the other."""
    few, little = SearchLimits(trials=_TRIALS_OF_A_PART), REWRITE_GAIN
    in_parts = (TuneCombineParallel(), TuneRewrite(limits=few))
    return Sequential(
        [
            TunePipeline(expected_gain=little),
            TuneSubgraphs(passes=in_parts, expected_gain=little),
            TuneCombineParallel(expected_gain=little),
            TuneRewrite(expected_gain=little),
            TuneLayout(expected_gain=little),
            TuneKernelsJointly(),
            TuneLibraries(expected_gain=little),
            TuneSchedule(),
        ]
    )


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


def with_schedules(
    passes: Sequence[Pass],
    schedules: bool | None,
    seconds: float | None,
    trials: int | None,
    cluster: str | None,
    targets: Sequence[Target],
) -> tuple[Pass, ...]:
    """Return passes with the requested tuning of schedules.

    Args:
        passes: Passes of a run.
        schedules: True to search all kernels, False to search none, None to leave the passes as they are.
        seconds: Seconds of a requested search, or None.
        trials: Maximum number of schedules of a requested search, or None.
        cluster: Address of a cluster that measures, or None. Its workers do not have schedule logs.
        targets: Targets of the run.

    Raises:
        UsageError: A search is requested on a cluster, or without native.
    """
    others = tuple(item for item in passes if not isinstance(item, TuneSchedule))
    if seconds is None:
        return others if schedules is False or cluster is not None else tuple(passes)
    if cluster is not None:
        raise UsageError(
            "schedules are searched on this machine only", help="drop the cluster, or the search of schedules"
        )
    if all(target.toolchain != Native.name for target in targets):
        raise UsageError(
            "schedules are of native kernels, and native is not among the targets",
            help="add --target native, or leave out --schedules",
        )
    return (*others, TuneSchedule(seconds=seconds, trials=trials, least_share=0.0, share=1.0))
