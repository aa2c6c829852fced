"""How many elements of a buffer the inner loops of a nest touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from intarsia.autoschedule.features.store_record import LoopAround
from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Buffer, LoopVar, Scalar
from intarsia.native.tir.affine import affine, scalar_range


@dataclass(frozen=True)
class IndexForm:
    """An index as a sum: a constant, a multiple of each loop's counter, and what is no such multiple.

    Attributes:
        constant: What is added.
        factors: For each loop.
        rest: Other scalars with their factors.
    """

    constant: int
    factors: tuple[int, ...]
    rest: tuple[tuple[Scalar, int], ...]

    @classmethod
    def of(cls, index: Scalar, loops: Sequence[LoopAround]) -> IndexForm:
        """The form of an index."""
        form = affine(index)
        terms = form.terms
        factors = tuple([terms.get(loop.var, 0) for loop in loops])
        if len(factors) - factors.count(0) == len(terms):  # as a rule
            return cls(form.constant, factors, ())
        counters = {loop.var for loop in loops}
        rest = tuple((scalar, factor) for scalar, factor in terms.items() if scalar not in counters)
        return cls(form.constant, factors, rest)

    @cached_property
    def rest_vars(self) -> frozenset[LoopVar]:
        """Counters in the rest."""
        parts = (part for scalar, _ in self.rest for part, _ in scalar_post_order(scalar))
        return frozenset(part for part in parts if isinstance(part, LoopVar))

    def step(self, place: int, loop: LoopAround) -> float:
        """By how much the index moves with a loop, on average."""
        if self.factors[place] or loop.var not in self.rest_vars or loop.extent < 2:
            return abs(self.factors[place])
        low, high = self._rest_range({loop.var: (0, loop.extent - 1)})
        return max(1, high - low) / (loop.extent - 1)

    def _rest_range(self, ranges: dict[LoopVar, tuple[int, int]]) -> tuple[int, int]:
        known = {**dict.fromkeys(self.rest_vars, (0, 0)), **ranges}
        low = high = 0
        for scalar, factor in self.rest:
            least, greatest = scalar_range(scalar, known)
            low += factor * (least if factor > 0 else greatest)
            high += factor * (greatest if factor > 0 else least)
        return low, high

    def hulls(self, loops: Sequence[LoopAround]) -> list[tuple[int, int]]:
        """For each loop, and for one iteration of all: the least and the greatest value inside it.

        Loops outside are in their first iteration.
        """
        low = high = self.constant
        ranges: dict[LoopVar, tuple[int, int]] = {}
        least, most = self._rest_range(ranges) if self.rest else (0, 0)
        found = [(low + least, high + most)]
        for factor, loop in zip(reversed(self.factors), reversed(loops), strict=True):
            if factor > 0:
                high += factor * (loop.extent - 1)
            elif factor < 0:
                low += factor * (loop.extent - 1)
            if self.rest and loop.var in self.rest_vars:
                ranges[loop.var] = (0, loop.extent - 1)
                least, most = self._rest_range(ranges)
            found.append((low + least, high + most))
        return found[::-1]


def region_sizes(
    buffer: Buffer, accesses: Sequence[Sequence[IndexForm]], loops: Sequence[LoopAround]
) -> list[tuple[int, ...]]:
    """For each loop, and for one iteration of all: the extents of the hull of all accesses inside it."""
    sizes: list[list[int]] = []
    for dim, extent in enumerate(buffer.shape):
        forms = [access[dim] for access in accesses]
        first, *others = [form.hulls(loops) for form in (forms if len(forms) == 1 else dict.fromkeys(forms))]
        for hulls in others:
            pairs = zip(first, hulls, strict=True)
            first = [(min(low, least), max(high, most)) for (low, high), (least, most) in pairs]
        sizes.append([max(1, min(extent, high - low + 1)) for low, high in first])
    return list(zip(*sizes, strict=True)) if sizes else [()] * (len(loops) + 1)


def contiguous_elements(sizes: Sequence[int], shape: Sequence[int]) -> int:
    """How many elements of a region of a buffer stand side by side."""
    run = 1
    for size, extent in zip(reversed(sizes), reversed(shape), strict=True):
        run *= size
        if size < extent:
            break
    return run


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements from one index to the next, for each dimension."""
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))
