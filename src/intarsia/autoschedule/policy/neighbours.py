"""Programs that differ from another program in one decision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Final

from intarsia.autoschedule.mutation.mutate_parallel import MutateParallel
from intarsia.autoschedule.population import replay_program, with_bounds
from intarsia.autoschedule.population.factorizations import divisors
from intarsia.autoschedule.population.gpu import ThreadSizes, is_launchable
from intarsia.autoschedule.sketch.micro_kernel_sketch import MicroKernelSketch
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.steps import PragmaStep, SplitStep, TransformStep
from intarsia.native.loop_state.steps.pragma_step import AUTO_UNROLL

_DRAWS: Final = 12
"""Number of draws that nearly always cover the few possible numbers of fused parallel loops."""


def neighbours(
    task: SearchTask, state: LoopState, space: SpaceOptions | None = None
) -> tuple[LoopState, ...]:
    """Return the programs one step away: a moved prime factor, another pragma, another parallel loop.

    Where a split leaves a remainder anyway, a length may also change by one. These are the steps of
    coordinate descent; a mutation may move several factors at once. With micro-kernels
    in the space, schedules that differ in one knob are included.

    Args:
        task: Search task.
        state: A program of the task.
        space: Limits of lengths, and values of the unroll pragma.

    Returns:
        All neighbours, distinct and different from the program, with the ranges of all loops.
    """
    limits = space or SpaceOptions()
    if task.hardware.is_gpu:
        return _gpu_neighbours(task, state, limits)
    histories = [*_other_tiles(state.transform_steps, limits), *_other_hints(state.transform_steps, limits)]
    candidates = [replay_program(task.dag, steps) for steps in histories]
    candidates += [MutateParallel().apply(task, state, Random(seed), limits) for seed in range(_DRAWS)]  # noqa: S311
    candidates += map(with_bounds, _other_micro_kernels(task, state, limits))
    by_text = {neighbour.text: neighbour for neighbour in candidates if neighbour is not None}
    by_text.pop(state.text, None)
    return tuple(by_text.values())


def _gpu_neighbours(task: SearchTask, state: LoopState, space: SpaceOptions) -> tuple[LoopState, ...]:
    """Return the programs for a GPU with another length, the next smaller or larger, or another pragma."""
    histories = [
        *_other_sizes(ThreadSizes(state, task.hardware)),
        *_other_hints(state.transform_steps, space),
    ]
    replayed = (replay_program(task.dag, steps) for steps in histories)
    by_text = {after.text: after for after in replayed if after is not None and after.text != state.text}
    return tuple(after for after in by_text.values() if is_launchable(task, after))


def _other_sizes(sizes: ThreadSizes) -> Iterator[list[TransformStep]]:
    given = sizes.given
    for position in range(len(given)):
        for lengths in sizes.next_lengths(position, given):
            chosen = (*given[:position], lengths, *given[position + 1 :])
            if sizes.allows(chosen):
                yield sizes.steps(chosen)


def _other_tiles(steps: Sequence[TransformStep], space: SpaceOptions) -> Iterator[list[TransformStep]]:
    for index, step in enumerate(steps):
        if isinstance(step, SplitStep) and step.inner_to_outer and (step.extent or 0) > 1:
            for lengths in _other_lengths(step, space.max_innermost_split_factor):
                yield [*steps[:index], replace(step, lengths=lengths), *steps[index + 1 :]]


def _other_lengths(step: SplitStep, most_innermost: int) -> Iterator[tuple[int, ...]]:
    """Yield the lengths with a prime factor moved between parts; plus or minus one if there is a remainder.

    The outermost part of a split with a remainder has no exact factors: it gives a factor 2, and takes any.
    """
    extent = step.extent or 1
    lengths = tuple(length or 1 for length in step.lengths)
    outermost = -(-extent // math.prod(lengths))
    has_rest = extent % math.prod(lengths) > 0
    sizes = min(outermost, 2) if has_rest else outermost, *lengths
    candidates = [
        _moved(lengths, source, target, prime)
        for source, target in permutations(range(len(sizes)), 2)
        for prime in _primes(sizes[source])
    ]
    for index, length in enumerate(lengths if has_rest else ()):
        candidates += [
            (*lengths[:index], length + delta, *lengths[index + 1 :])
            for delta in (-1, 1)
            if length + delta > 0
        ]
    for changed in candidates:
        if changed[-1] <= max(most_innermost, lengths[-1]):
            yield changed


def _moved(lengths: tuple[int, ...], source: int, target: int, factor: int) -> tuple[int, ...]:
    """Return the lengths with a factor moved between parts; part 0 is implied by the other lengths."""
    moved = [0, *lengths]
    moved[source] //= factor
    moved[target] *= factor
    return tuple(moved[1:])


def _primes(number: int) -> list[int]:
    """Return the distinct prime factors."""
    return [divisor for divisor in divisors(number)[1:] if len(divisors(divisor)) == 2]


def _other_hints(steps: Sequence[TransformStep], space: SpaceOptions) -> Iterator[list[TransformStep]]:
    for index, step in enumerate(steps):
        if isinstance(step, PragmaStep) and step.pragma_type.startswith(f"{AUTO_UNROLL}$"):
            for number in space.unroll_steps:
                hint = f"{AUTO_UNROLL}${number}"
                yield [*steps[:index], replace(step, pragma_type=hint), *steps[index + 1 :]]


def _other_micro_kernels(task: SearchTask, state: LoopState, space: SpaceOptions) -> Iterator[LoopState]:
    isa = space.micro_kernels
    sketch = None if isa is None else MicroKernelSketch.of_task(task, isa)
    if sketch is not None:
        yield from sketch.neighbours(state)
