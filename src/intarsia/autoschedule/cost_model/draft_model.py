"""An analytical score: how well loops fit the machine, without learning.

The constants below were fitted to the ranks of 280 measured schedules of five computations on one
machine, AMD's Zen 3. What the machine model contains is taken from it, or scaled by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from intarsia.autoschedule.cost_model.cost_model import Scores
from intarsia.autoschedule.features.arithmetic_intensity import float_operations
from intarsia.autoschedule.features.covered_work import padding_ratio, padding_ratios
from intarsia.autoschedule.features.lowered_state import lower_state
from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.features.machine_fit import machine_fit
from intarsia.autoschedule.features.per_store import unroll_steps
from intarsia.autoschedule.features.register_tile import RegisterTile
from intarsia.autoschedule.features.store_analysis import StoreAnalysis, analyse_stores
from intarsia.autoschedule.task import SearchTask
from intarsia.ir import PrimFunc
from intarsia.native.loop_state import LoopState
from intarsia.target.machine_families import family_model

_IN_FLIGHT: Final = 800
"""Vector operations in the reorder window: short reductions of several tiles overlap within it."""
_STEP_COST: Final = 1.0
"""Overhead of a reduction step, in vector operations (as the unit of the next three)."""
_VECTOR_COST: Final = 1.0
"""Overhead of a vector load that is shared by several results."""
_ELEMENT_COST: Final = 0.2
"""Overhead of a scalar load (a broadcast)."""
_MEMORY_COST: Final = 4.0
"""Cost of a result that is spilled from its register."""
_REST_SHARE: Final = 0.1
"""Exponent of the padding ratio: a remainder is a smaller tile, so that most skipped iterations are free."""
_SECOND_BYTES: Final = 8
"""Fill bandwidth of the L2 cache in bytes per cycle, where memory gives as many as on Zen 3."""
_START: Final = 10_000
"""Cycles to start and join the threads of a parallel loop, where a barrier takes as long as on Zen 3: most of
them are threads that arrive late."""
_MEASURED_ON: Final = family_model("znver3")

_Cycles: TypeAlias = tuple[float, float, float, float]
_NOTHING: Final[_Cycles] = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class DraftModel:
    """Analytical model that prunes candidates for a learned model, and replaces it while samples are few.

    The cost of a store is the larger of its compute cycles and its load cycles. It is higher
    if its register tile is too small to hide the latency of accumulation or is spilled, or if vectors are
    gathered. The cost of a function is the largest of the sum of these cycles and of the L1 and L2 fill
    cycles, divided among the threads that have work, plus the cost of starting them. The score is one over
    the
    millions of cycles (Pruner's draft). The constants are fitted to the ranks of 280 measured schedules of
    five computations on one machine: convolutions, a depthwise one, and a product.

    Attributes:
        machine: Vector width, registers, caches and threads of the machine.
    """

    machine: Machine

    def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
        """Do nothing: the model has no parameters to fit."""

    def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:
        """Return a score per state; -inf for states that cannot be lowered."""
        return np.array([self._score(task, state) for state in states], np.float64)

    def _score(self, task: SearchTask, state: LoopState) -> float:
        lowered = lower_state(task, state)
        if lowered is None:
            return float("-inf")
        unroll = unroll_steps(lowered.function)
        return 1e6 / max(1.0, cycles_of_stores(lowered.stores, self.machine, unroll))


def draft_cycles(function: PrimFunc, machine: Machine) -> float:
    """Estimate the cycles of a loop function as `lower` returns it; only good for comparing functions."""
    return cycles_of_stores(analyse_stores(function), machine, unroll_steps(function))


def cycles_of_stores(stores: Sequence[StoreAnalysis], machine: Machine, unroll: float = 0.0) -> float:
    """Estimate the cycles of an analysed function, see `draft_cycles`.

    Args:
        stores: Analysed stores of the function.
        machine: Machine that runs the function.
        unroll: Value of its pragma `auto_unroll_max_step`.
    """
    ratios = padding_ratios(stores)
    parts = [_store_cycles(store, machine, unroll, padding_ratio(store, ratios)) for store in stores]
    issued, first, second, starts = (
        (sum(column) for column in zip(*parts, strict=True)) if parts else _NOTHING
    )
    return max(issued, first, second) + starts


def _store_cycles(store: StoreAnalysis, machine: Machine, unroll: float, padding: float) -> _Cycles:
    """Return the cycles of a store: compute, L1 fill, L2 fill, and thread start."""
    fit, tile = machine_fit(store, machine), RegisterTile.of_store(store, machine, unroll)
    iterations, threads = store.iterations / padding, fit.balance * machine.threads
    model = machine.model
    second = _SECOND_BYTES * model.memory_bandwidth / _MEASURED_ON.memory_bandwidth
    start = _START * model.barrier_cycles / _MEASURED_ON.barrier_cycles
    vectors = iterations * float(padding**_REST_SHARE) / (tile.vectors * fit.lanes * fit.vector_fit)
    sums = model.independent_sums(machine.vector_bytes)
    operations = _operations(store, tile, fit.lanes * fit.vector_fit, sums)
    return (
        vectors * operations / model.fmas_per_cycle(machine.vector_bytes) / threads,
        iterations * fit.first_traffic / model.second_bandwidth / threads,
        store.iterations * fit.second_traffic / second / threads,
        float(start * fit.starts),
    )


def _operations(store: StoreAnalysis, tile: RegisterTile, lanes: float, sums: int) -> float:
    """Return the vector operations of a reduction step, of which the pipes issue one each per cycle.

    Args:
        store: Analysed store.
        tile: Its register tile.
        lanes: Number of elements of a vector.
        sums: Number of operations that are issued during the latency of an accumulation.
    """
    # A multiply-add is counted as `mad` beside its product and its sum, but is one instruction (FMA).
    computed = tile.vectors * max(1, float_operations(store) - store.record.counts[0])
    busy = max(computed, tile.read_vectors + tile.read_elements)
    if tile.length > 1:
        # A tile with few accumulators waits for their latency, except as far as the reorder window overlaps
        # several short reductions.
        overlapping = max(1.0, _IN_FLIGHT / (busy * tile.length))
        busy = max(busy, sums * computed / tile.vectors / overlapping)
        busy += 0.0 if tile.is_kept else _MEMORY_COST * tile.vectors
    else:
        busy += tile.vectors
    busy += tile.vectors * lanes if tile.is_scattered else 0.0
    return (
        busy + _STEP_COST / tile.steps + _ELEMENT_COST * tile.read_elements + _VECTOR_COST * tile.read_vectors
    )
