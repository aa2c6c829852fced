"""A score without learning: how well loops fit the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.autoschedule.cost_model.cost_model import Scores
from intarsia.autoschedule.features.arithmetic_intensity import float_operations
from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.features.machine_fit import MachineFit, machine_fit
from intarsia.autoschedule.features.store_analysis import StoreAnalysis, analysed_stores
from intarsia.autoschedule.task import SearchTask
from intarsia.ir import PrimFunc
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower
from intarsia.support.errors import UsageError

_ISSUES: Final = 2
"""Vector operations that a core begins a cycle."""
_LATENCY: Final = 4
"""Cycles until an accumulator can be updated again."""
_FIRST_BYTES: Final = 32
"""Bytes a cycle that come into the first cache."""
_SECOND_BYTES: Final = 8
"""Bytes a cycle that come into the second cache."""
_START: Final = 10_000
"""Cycles until threads have begun and ended their work."""
_KEPT_FREE: Final = 4
"""Registers that hold operands, not results."""


@dataclass(frozen=True, slots=True)
class DraftModel:
    """Prunes before a learned model predicts, and stands in for it while it has too few samples.

    A store takes the cycles of its vector operations, more if its tile of results is too small to hide their
    latency or too large for the registers, or if vectors are gathered; or the cycles of what comes into the
    first and the second cache, whichever is more; on as many threads as have work, which take their time to
    begin. The score is one over the millions of cycles of all stores (Pruner's draft; its parts are those of
    `MachineFit`).

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
        try:
            function = lower(task.dag, state)
        except UsageError:
            return float("-inf")
        return 1e6 / max(1.0, draft_cycles(function, self.machine))


def draft_cycles(function: PrimFunc, machine: Machine) -> float:
    """The cycles that a loop function is expected to take, as `lower` gives it; good for comparing only."""
    return sum(_store_cycles(store, machine) for store in analysed_stores(function))


def _store_cycles(store: StoreAnalysis, machine: Machine) -> float:
    fit = machine_fit(store, machine)
    issued = _issued(store, fit, machine)
    moved = max(fit.first_traffic / _FIRST_BYTES, fit.second_traffic / _SECOND_BYTES)
    work = store.iterations * max(issued, moved) / (fit.balance * machine.threads)
    return work + _START * fit.starts


def _issued(store: StoreAnalysis, fit: MachineFit, machine: Machine) -> float:
    """Cycles an iteration."""
    operations = float_operations(store) - store.record.counts[0]  # products that are added are one operation
    spilled = fit.tile_vectors > machine.vector_registers - _KEPT_FREE
    memory = fit.loads + (2.0 if spilled else 0.0)
    vectors = max(1, operations) + memory
    elements = fit.lanes * fit.vector_fit
    gathered = 1 - fit.smooth_share
    each = vectors / elements * (1 + gathered * (elements - 1))
    hidden = min(1.0, fit.tile_vectors / (_ISSUES * _LATENCY)) if store.written.is_read else 1.0
    return each / (_ISSUES * hidden)
