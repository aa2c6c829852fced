"""Padding of loops: iterations beyond the number of elements."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from intarsia.autoschedule.features.store_analysis import StoreAnalysis


def padding_ratios(stores: Iterable[StoreAnalysis]) -> dict[int, float]:
    """Return iterations per element, where above 1, for the loops by number that split a result's dimension.

    Tiles of 10 pixels over a row of 56 have 60 iterations; guards skip 4 of them. The key
    is the outermost loop of the dimension, so that stages inside it count as padded too.
    """
    ratios: dict[int, float] = {}
    for store in stores:
        if store.record.buffer.name in store.record.allocated:
            continue
        for form, extent in zip(store.written.accesses[0], store.written.buffer.shape, strict=True):
            places = [place for place, factor in enumerate(form.factors) if factor]
            iterations = prod(store.loops[place].extent for place in places)
            if places and not form.rest and iterations > extent > 0:
                ratios[store.loops[places[0]].number] = iterations / extent
    return ratios


def padding_ratio(store: StoreAnalysis, ratios: dict[int, float]) -> float:
    """Return iterations of a store per executed iteration, from the result of `padding_ratios`."""
    return prod(ratios.get(loop.number, 1.0) for loop in store.loops)
