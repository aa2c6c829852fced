"""Regions of a buffer that the inner loops of a nest touch."""

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
    """An index as an affine form: a constant, a multiple of each loop counter, and a non-affine rest.

    Attributes:
        constant: Constant term.
        factors: Coefficient of each loop counter, outermost first.
        rest: Other scalar terms with their coefficients.
    """

    constant: int
    factors: tuple[int, ...]
    rest: tuple[tuple[Scalar, int], ...]

    @classmethod
    def of(cls, index: Scalar, loops: Sequence[LoopAround]) -> IndexForm:
        """Return the affine form of an index."""
        form = affine(index)
        terms = form.terms
        factors = tuple([terms.get(loop.var, 0) for loop in loops])
        if len(factors) - factors.count(0) == len(terms):  # the common case: all terms are loop counters
            return cls(form.constant, factors, ())
        counters = {loop.var for loop in loops}
        rest = tuple((scalar, factor) for scalar, factor in terms.items() if scalar not in counters)
        return cls(form.constant, factors, rest)

    @cached_property
    def rest_vars(self) -> frozenset[LoopVar]:
        """Loop counters that occur in the rest."""
        parts = (part for scalar, _ in self.rest for part, _ in scalar_post_order(scalar))
        return frozenset(part for part in parts if isinstance(part, LoopVar))

    def step(self, depth: int, loop: LoopAround) -> float:
        """Return the average change of the index per iteration of a loop."""
        if self.factors[depth] or loop.var not in self.rest_vars or loop.extent < 2:
            return abs(self.factors[depth])
        low, high = self._rest_range({loop.var: (0, loop.extent - 1)})
        return max(1, high - low) / (loop.extent - 1)

    def _rest_range(self, ranges: dict[LoopVar, tuple[int, int]]) -> tuple[int, int]:
        all_ranges = {**dict.fromkeys(self.rest_vars, (0, 0)), **ranges}
        low = high = 0
        for scalar, factor in self.rest:
            least, greatest = scalar_range(scalar, all_ranges)
            low += factor * (least if factor > 0 else greatest)
            high += factor * (greatest if factor > 0 else least)
        return low, high

    def hulls(self, loops: Sequence[LoopAround]) -> list[tuple[int, int]]:
        """Return the least and the greatest value inside each loop, and last in one iteration of all loops.

        Loops outside are in their first iteration.
        """
        low = high = self.constant
        ranges: dict[LoopVar, tuple[int, int]] = {}
        least, most = self._rest_range(ranges) if self.rest else (0, 0)
        hulls_inside_out = [(low + least, high + most)]
        # From the innermost loop outwards, each loop widens the hull by its full trip; a negative factor
        # lowers the minimum.
        for factor, loop in zip(reversed(self.factors), reversed(loops), strict=True):
            if factor > 0:
                high += factor * (loop.extent - 1)
            elif factor < 0:
                low += factor * (loop.extent - 1)
            if self.rest and loop.var in self.rest_vars:
                ranges[loop.var] = (0, loop.extent - 1)
                least, most = self._rest_range(ranges)
            hulls_inside_out.append((low + least, high + most))
        return hulls_inside_out[::-1]


def region_sizes(
    buffer: Buffer, accesses: Sequence[Sequence[IndexForm]], loops: Sequence[LoopAround]
) -> list[tuple[int, ...]]:
    """Return the extents of the hull of all accesses inside each loop, and last in one iteration of all."""
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
    """Return the number of contiguous elements of a region of a buffer."""
    run = 1
    for size, extent in zip(reversed(sizes), reversed(shape), strict=True):
        run *= size
        if size < extent:
            break
    return run


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the row-major stride of each dimension, in elements."""
    return tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))
