"""Programs that differ from another one in one decision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Final

from intarsia.autoschedule.mutation.mutate_parallel import MutateParallel
from intarsia.autoschedule.population import completed, with_bounds
from intarsia.autoschedule.population.factorizations import divisors
from intarsia.autoschedule.sketch.micro_kernel_sketch import MicroKernelSketch
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.steps import PragmaStep, SplitStep, TransformStep
from intarsia.native.loop_state.steps.pragma_step import AUTO_UNROLL

_DRAWS: Final = 12
"""So many draws find nearly always all numbers of loops, few as they are, that may be one parallel loop."""


def neighbours(
    task: SearchTask, state: LoopState, space: SpaceOptions | None = None
) -> tuple[LoopState, ...]:
    """The programs a step away: a prime factor elsewhere in a split, another hint, another parallel loop.

    Where a split leaves a rest anyway, a length may also be one more or less. These are the steps of
    coordinate descent; a mutation is one of many, which may move several factors at once. With micro-kernels
    in the space there are also those that differ in one of their decisions.

    Args:
        task: What is searched.
        state: A program of the task.
        space: Limits of lengths, and the hints there are.

    Returns:
        All of them, different from one another and from the program, with the ranges of all loops.
    """
    limits = space or SpaceOptions()
    histories = [*_other_tiles(state.transform_steps, limits), *_other_hints(state.transform_steps, limits)]
    made = [completed(task.dag, steps) for steps in histories]
    made += [MutateParallel().apply(task, state, Random(seed), limits) for seed in range(_DRAWS)]  # noqa: S311
    made += map(with_bounds, _other_micro_kernels(task, state, limits))
    found = {each.text: each for each in made if each is not None}
    found.pop(state.text, None)
    return tuple(found.values())


def _other_tiles(steps: Sequence[TransformStep], space: SpaceOptions) -> Iterator[list[TransformStep]]:
    for place, step in enumerate(steps):
        if isinstance(step, SplitStep) and step.inner_to_outer and (step.extent or 0) > 1:
            for lengths in _other_lengths(step, space.max_innermost_split_factor):
                yield [*steps[:place], replace(step, lengths=lengths), *steps[place + 1 :]]


def _other_lengths(step: SplitStep, most_innermost: int) -> Iterator[tuple[int, ...]]:
    """The lengths with a prime factor moved from one part to another; one more or less if there is a rest.

    The outermost part of a split that leaves a rest has no factors: it gives a 2, and takes any.
    """
    extent = step.extent or 1
    known = tuple(length or 1 for length in step.lengths)
    outermost = -(-extent // math.prod(known))
    has_rest = extent % math.prod(known) > 0
    sizes = min(outermost, 2) if has_rest else outermost, *known
    found = [
        _moved(known, source, target, prime)
        for source, target in permutations(range(len(sizes)), 2)
        for prime in _primes(sizes[source])
    ]
    for place, length in enumerate(known if has_rest else ()):
        found += [(*known[:place], length + by, *known[place + 1 :]) for by in (-1, 1) if length + by > 0]
    for lengths in found:
        if lengths[-1] <= max(most_innermost, known[-1]):
            yield lengths


def _moved(lengths: tuple[int, ...], source: int, target: int, factor: int) -> tuple[int, ...]:
    """With a factor of one part in another; part 0 follows from the lengths of the others."""
    moved = [0, *lengths]
    moved[source] //= factor
    moved[target] *= factor
    return tuple(moved[1:])


def _primes(number: int) -> list[int]:
    """The prime factors, each once."""
    return [each for each in divisors(number)[1:] if len(divisors(each)) == 2]


def _other_hints(steps: Sequence[TransformStep], space: SpaceOptions) -> Iterator[list[TransformStep]]:
    for place, step in enumerate(steps):
        if isinstance(step, PragmaStep) and step.pragma_type.startswith(f"{AUTO_UNROLL}$"):
            for number in space.unroll_steps:
                hint = f"{AUTO_UNROLL}${number}"
                yield [*steps[:place], replace(step, pragma_type=hint), *steps[place + 1 :]]


def _other_micro_kernels(task: SearchTask, state: LoopState, space: SpaceOptions) -> Iterator[LoopState]:
    isa = space.micro_kernels
    sketch = None if isa is None else MicroKernelSketch.of_task(task, isa)
    if sketch is not None:
        yield from sketch.neighbours(state)
