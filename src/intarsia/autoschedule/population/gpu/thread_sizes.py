"""Lengths that the splits of a sketch for a GPU may have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from intarsia.autoschedule.population.factorizations import divisors
from intarsia.autoschedule.population.gpu.open_splits import OpenSplit, splits_of
from intarsia.autoschedule.task.hardware_params import HardwareParams
from intarsia.native.loop_state import IteratorAnnotation, LoopState
from intarsia.native.loop_state.steps import SplitStep, TransformStep

_MOST_IN_THREAD: Final = 64
"""Maximum number of results of a thread, those of its virtual threads included."""
_MOST_REDUCED: Final = 64
"""Maximum number of elements of a reduction in one step."""
_WARP_TILES: Final = (16, 32, 64)
"""Extents of the tile of a warp on tensor cores."""
_MOST_WARPS: Final = 4
"""Maximum number of warps of a block in one direction."""

Lengths = tuple[int, ...]


@dataclass(frozen=True)
class ThreadSizes:
    """The lengths of the splits of a sketch, or of a program, chosen one after the other.

    A length is a divisor of what is left of its loop, or a power of two: tiles need not divide, as guards
    keep threads from what is not there. Limits hold for all splits of a stage together, so that the choices
    of a split depend on the lengths of those before it.

    Attributes:
        state: Sketch, or program, whose steps are changed.
        hardware: Limits of the GPU.
    """

    state: LoopState
    hardware: HardwareParams

    @property
    def splits(self) -> tuple[OpenSplit, ...]:
        """The splits, in the order of their steps."""
        return splits_of(self.state)

    def choices(self, position: int, chosen: Sequence[Lengths]) -> Iterator[Lengths]:
        """Yield the lengths of a split, given those of all splits before it."""
        split = self.splits[position]
        before = list(zip(self.splits[:position], chosen, strict=True))
        yield from self._lengths(split, (), before, split.extent)

    def draw(self, position: int, chosen: Sequence[Lengths], rng: Random) -> Lengths:
        """Draw the lengths of a split, given those of all splits before it, the innermost one first."""
        split = self.splits[position]
        before = list(zip(self.splits[:position], chosen, strict=True))
        inner: Lengths = ()
        left = split.extent
        for part in range(len(split.annotations) - 1, 0, -1):
            length = rng.choice(self._part_sizes(split, part, inner, before, left))
            inner = (length, *inner)
            left = None if left is None else -(-left // length)
        return inner

    def next_lengths(self, position: int, chosen: Sequence[Lengths]) -> Iterator[Lengths]:
        """Yield the lengths of a split of a program with one of them the next smaller or larger."""
        split, lengths = self.splits[position], chosen[position]
        before = list(zip(self.splits[:position], chosen[:position], strict=True))
        left = split.extent
        for part in range(len(lengths), 0, -1):
            inner = lengths[part:]
            sizes = self._part_sizes(split, part, inner, before, left)
            here = lengths[part - 1]
            smaller = max((size for size in sizes if size < here), default=None)
            larger = min((size for size in sizes if size > here), default=None)
            for size in (smaller, larger):
                if size is not None:
                    yield (*lengths[: part - 1], size, *inner)
            left = None if left is None else -(-left // here)

    def allows(self, chosen: Sequence[Lengths]) -> bool:
        """Return whether all lengths keep the limits, which those of later splits may not after a change."""
        pairs = list(zip(self.splits, chosen, strict=True))
        return all(
            split.annotations[part] is IteratorAnnotation.TENSORIZE
            or lengths[part - 1] <= self._limit(split, part, lengths[part:], pairs[:position])
            for position, (split, lengths) in enumerate(pairs)
            for part in range(1, len(split.annotations))
        )

    def steps(self, chosen: Sequence[Lengths]) -> list[TransformStep]:
        """Return the history with chosen lengths."""
        steps = list(self.state.transform_steps)
        for split, lengths in zip(self.splits, chosen, strict=True):
            step = steps[split.number]
            assert isinstance(step, SplitStep), "only these are splits"
            steps[split.number] = replace(step, lengths=lengths)
        return steps

    @property
    def given(self) -> tuple[Lengths, ...]:
        """The lengths of a program."""
        steps = (self.state.transform_steps[split.number] for split in self.splits)
        return tuple(
            tuple(length or 1 for length in step.lengths) for step in steps if isinstance(step, SplitStep)
        )

    def _lengths(
        self, split: OpenSplit, inner: Lengths, before: list[tuple[OpenSplit, Lengths]], left: int | None
    ) -> Iterator[Lengths]:
        """Yield the lengths whose last ones are `inner`, innermost first."""
        part = len(split.annotations) - 1 - len(inner)
        if part == 0:
            yield inner
            return
        for length in self._part_sizes(split, part, inner, before, left):
            rest = None if left is None else -(-left // length)
            yield from self._lengths(split, (length, *inner), before, rest)

    def _part_sizes(
        self,
        split: OpenSplit,
        part: int,
        inner: Lengths,
        before: list[tuple[OpenSplit, Lengths]],
        left: int | None,
    ) -> Sequence[int]:
        """Return the lengths that a part may have, given those inside of it."""
        if split.annotations[part] is IteratorAnnotation.TENSORIZE:
            return _warp_tiles(left)
        return _sizes(left, self._limit(split, part, inner, before))

    def _limit(
        self, split: OpenSplit, part: int, inner: Lengths, before: list[tuple[OpenSplit, Lengths]]
    ) -> int:
        """Return the maximum of a length, given the others of its kind in the stage."""
        kind = _kind(split, part)
        if kind == "vector":
            return max(1, self.hardware.vector_unit_bytes // split.element_bytes)
        if IteratorAnnotation.TENSORIZE in split.annotations:
            return _MOST_WARPS
        # Partial results and their sums are stages of one kernel: threads of both have a limit together.
        alike = [
            (other, 1, lengths) for other, lengths in before if other.stage == split.stage or other.is_shared
        ]
        taken = dict.fromkeys(("thread", "virtual", "reduced", "element"), 1)
        for other, first, lengths in (*alike, (split, part + 1, inner)):
            for number, length in enumerate(lengths, first):
                if _kind(other, number) in taken:
                    taken[_kind(other, number)] *= length
        limits = {
            "thread": self.hardware.max_threads_per_block,
            "virtual": min(self.hardware.max_vthread_extent, _MOST_IN_THREAD // taken["element"]),
            "reduced": _MOST_REDUCED,
            "element": _MOST_IN_THREAD // taken["virtual"],
        }
        return max(1, limits[kind] // taken[kind])


def _kind(split: OpenSplit, part: int) -> str:
    """Return what a part of a split becomes: lengths of one kind have a limit together."""
    annotation = split.annotations[part]
    if split.is_shared or annotation is IteratorAnnotation.THREAD_X:
        return "thread"
    if annotation is IteratorAnnotation.VTHREAD:
        return "virtual"
    if annotation is IteratorAnnotation.VECTORIZE:
        return "vector"
    return "reduced" if split.is_reduced else "element"


def _warp_tiles(left: int | None) -> Sequence[int]:
    """Return the extents of tiles of a warp up to the first that covers what is left of a loop."""
    enough = next((tile for tile in _WARP_TILES if left is not None and tile >= left), _WARP_TILES[-1])
    return [tile for tile in _WARP_TILES if tile <= enough]


def _sizes(left: int | None, most: int) -> Sequence[int]:
    """Return the divisors of what is left of a loop, and powers of two up to it, ascending."""
    if left is None:
        left = most
    powers = []
    power = 1
    while power <= most:
        powers.append(power)
        if power >= left:
            break
        power *= 2
    return sorted({*powers, *(size for size in divisors(max(1, left)) if size <= most)})
