"""A score without learning: how well loops fit the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from intarsia.autoschedule.cost_model.cost_model import Scores
from intarsia.autoschedule.features.arithmetic_intensity import float_operations
from intarsia.autoschedule.features.covered_work import cover, covers
from intarsia.autoschedule.features.lowered_state import lowered_state
from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.features.machine_fit import machine_fit
from intarsia.autoschedule.features.per_store import unroll_steps
from intarsia.autoschedule.features.register_tile import RegisterTile
from intarsia.autoschedule.features.store_analysis import StoreAnalysis, analysed_stores
from intarsia.autoschedule.task import SearchTask
from intarsia.ir import PrimFunc
from intarsia.native.loop_state import LoopState

_LATENCY: Final = 8
"""Vector operations that can begin until an accumulator can be updated again: four cycles, two in each."""
_IN_FLIGHT: Final = 800
"""Vector operations that are looked at together: short reductions of several tiles overlap."""
_STEP_COST: Final = 1.0
"""What a step of a reduction costs besides, in vector operations, as what follows."""
_VECTOR_COST: Final = 1.0
"""What a vector costs besides that is loaded for several results."""
_ELEMENT_COST: Final = 0.2
"""The same for an element."""
_MEMORY_COST: Final = 4.0
"""What a result costs that does not stay in its register."""
_REST_SHARE: Final = 0.1
"""How much of the iterations that are left out costs time, as a power: a rest is a smaller tile."""
_FIRST_BYTES: Final = 32
"""Bytes a cycle that come into the first cache."""
_SECOND_BYTES: Final = 8
"""Bytes a cycle that come into the second cache."""
_START: Final = 10_000
"""Cycles until threads have begun and ended their work."""

_Cycles: TypeAlias = tuple[float, float, float, float]
_NOTHING: Final[_Cycles] = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class DraftModel:
    """Prunes before a learned model predicts, and stands in for it while it has too few samples.

    A store takes the cycles of its vector operations or of its loads, whichever are more, and more than that
    if its tile of results is too small to hide their latency or does not stay in registers, or if vectors are
    gathered. All stores take these cycles, or those of what comes into the first or the second cache, if that
    is more; on as many threads as have work, which take their time to begin. The score is one over the
    millions of cycles (Pruner's draft). The constants are fitted to the ranks of 280 measured schedules of
    five computations on one machine: convolutions, a depthwise one, and a product.

    Attributes:
        machine: What loops are to fit.
    """

    machine: Machine

    def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
        """Nothing is learned."""

    def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:
        """A score for each state; -inf for those that cannot be lowered."""
        return np.array([self._score(task, state) for state in states], np.float64)

    def _score(self, task: SearchTask, state: LoopState) -> float:
        lowered = lowered_state(task, state)
        if lowered is None:
            return float("-inf")
        unroll = unroll_steps(lowered.function)
        return 1e6 / max(1.0, cycles_of_stores(lowered.stores, self.machine, unroll))


def draft_cycles(function: PrimFunc, machine: Machine) -> float:
    """The cycles that a loop function is expected to take, as `lower` gives it; good for comparing only."""
    return cycles_of_stores(analysed_stores(function), machine, unroll_steps(function))


def cycles_of_stores(stores: Sequence[StoreAnalysis], machine: Machine, unroll: float = 0.0) -> float:
    """As `draft_cycles`, of what was found out of a function before.

    Args:
        stores: Of the function.
        machine: Where it runs.
        unroll: Its hint for unrolling.
    """
    known = covers(stores)
    parts = [_store_cycles(store, machine, unroll, cover(store, known)) for store in stores]
    issued, first, second, starts = (sum(each) for each in zip(*parts, strict=True)) if parts else _NOTHING
    return max(issued, first, second) + starts


def _store_cycles(store: StoreAnalysis, machine: Machine, unroll: float, rests: float) -> _Cycles:
    """Of its operations, of what comes into the two caches, and to begin."""
    fit, tile = machine_fit(store, machine), RegisterTile.of_store(store, machine, unroll)
    iterations, threads = store.iterations / rests, fit.balance * machine.threads
    vectors = iterations * float(rests**_REST_SHARE) / (tile.vectors * fit.lanes * fit.vector_fit)
    return (
        vectors * _operations(store, tile, fit.lanes * fit.vector_fit) / 2 / threads,
        iterations * fit.first_traffic / _FIRST_BYTES / threads,
        store.iterations * fit.second_traffic / _SECOND_BYTES / threads,
        float(_START * fit.starts),
    )


def _operations(store: StoreAnalysis, tile: RegisterTile, lanes: float) -> float:
    """Vector operations of a step, of which two begin in a cycle."""
    # Products that are added are one operation.
    computed = tile.vectors * max(1, float_operations(store) - store.record.counts[0])
    busy = max(computed, tile.read_vectors + tile.read_elements)
    if tile.length > 1:
        overlapping = max(1.0, _IN_FLIGHT / (busy * tile.length))
        busy = max(busy, _LATENCY * computed / tile.vectors / overlapping)
        busy += 0.0 if tile.is_kept else _MEMORY_COST * tile.vectors
    else:
        busy += tile.vectors
    busy += tile.vectors * lanes if tile.is_scattered else 0.0
    return (
        busy + _STEP_COST / tile.steps + _ELEMENT_COST * tile.read_elements + _VECTOR_COST * tile.read_vectors
    )
