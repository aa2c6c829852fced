"""Input sets of a program at several sizes of its symbolic dimensions, each with its gate."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.quorum import DEFAULT_LIMITS, JudgeLimits, Panel
from intarsia.measure.judge.trials import Trial, trials_for
from intarsia.measure.sizes.size_sample import SizeSample
from intarsia.measure.sizes.tried_ranges import tried_ranges_text
from intarsia.passes import bind_sizes
from intarsia.support.callbacks import silent
from intarsia.support.errors import IntarsiaError

MOST_TIME: Final = 3.0
"""Time that judges may take for all sizes besides the first, as a multiple of that for one input set."""


def sized_trials(
    module: IRModule,
    ordinary: Mapping[str, Array],
    samples: Sequence[SizeSample],
    limits: JudgeLimits = DEFAULT_LIMITS,
    seed: int = 0,
    on_judge: Callable[[str], object] = silent,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Trial, ...]:
    """Return input sets of three kinds at the first sizes, and an ordinary one at each of the others.

    Judges compute the program with its sizes put in. Sizes at which no judge computes it, or judges do not
    agree, are left out; the gate's reference lists them. So are those that are not timed, once judges have
    taken `MOST_TIME` of the seconds of the limits for them.

    Args:
        module: Program without marked toolchains.
        ordinary: The first set, by parameter name: its arrays have the sizes of the first sample.
        samples: Sizes of the dimensions; none for a program without symbolic dimensions.
        limits: Limits of the panel, and its judges.
        seed: Seed of the other sets.
        on_judge: Called with the name of each judge that starts, as for `Panel`.
        clock: Seconds from an arbitrary start.

    Raises:
        IntarsiaError: No judge computes the program on the first set.
    """
    if not samples:
        return trials_for(module, ordinary, limits, seed, on_judge)
    usual, *others = samples
    try:
        first, *further = trials_for(bind_sizes(module, usual.sizes), ordinary, limits, seed, on_judge)
    except IntarsiaError as error:
        error.help = error.help or tried_ranges_text(module)
        raise
    trials = [replace(first, weight=usual.weight, label=usual.label), *further]
    left_out: list[str] = []
    too_late: list[str] = []
    begun = clock()
    for sample in others:
        if not sample.weight and clock() - begun > MOST_TIME * limits.seconds:
            too_late.append(sample.label)
            continue
        trial = _trial(module, sample, limits, seed, on_judge)
        if trial is None:
            left_out.append(sample.label)
        else:
            trials.append(trial)
    notes = [f"usual sizes: {usual.label}; others: {'; '.join(t.name for t in trials[1 + len(further) :])}"]
    if left_out:
        notes.append(f"not checked, as no judge computes them: {'; '.join(left_out)}")
    if too_late:
        notes.append(f"not checked, as the time was up: {'; '.join(too_late)}")
    gate = replace(first.gate, reference="; ".join((first.gate.reference, *notes)))
    return (replace(trials[0], gate=gate), *trials[1:])


def _trial(
    module: IRModule,
    sample: SizeSample,
    limits: JudgeLimits,
    seed: int,
    on_judge: Callable[[str], object],
) -> Trial | None:
    """Return an ordinary input set at some sizes, if it has a right result."""
    try:
        bound = bind_sizes(module, sample.sizes)
        inputs = random_inputs(bound["main"], seed)
        with Panel(bound, limits, on_judge) as panel:
            ruling = panel.ruling(inputs)
    except IntarsiaError:  # types or values that do not fit at these sizes
        return None
    if not ruling.is_proven:
        return None
    return Trial(sample.label, inputs, Gate.of_ruling(ruling), sample.weight, sample.label)
