"""How many iterations loops have beyond the work there is."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from intarsia.autoschedule.features.store_analysis import StoreAnalysis


def covers(stores: Iterable[StoreAnalysis]) -> dict[int, float]:
    """For loops by number that split a dimension of a result: iterations for each element, if above 1.

    Tiles of 10 pixels over a row of 56 are 60 iterations; guards leave out 4 of them. The loop that is named
    is the outermost one of the dimension, so that stages inside it are known to have rests too.
    """
    found: dict[int, float] = {}
    for store in stores:
        if store.record.buffer.name in store.record.allocated:
            continue
        for form, extent in zip(store.written.accesses[0], store.written.buffer.shape, strict=True):
            places = [place for place, factor in enumerate(form.factors) if factor]
            iterations = prod(store.loops[place].extent for place in places)
            if places and not form.rest and iterations > extent > 0:
                found[store.loops[places[0]].number] = iterations / extent
    return found


def cover(store: StoreAnalysis, known: dict[int, float]) -> float:
    """Iterations of a store for each that is carried out, of what `covers` found."""
    return prod(known.get(loop.number, 1.0) for loop in store.loops)
