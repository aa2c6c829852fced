"""Features of how well loops fit a machine; they follow Ansor's if a machine is given."""

from __future__ import annotations

from typing import Final

from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.features.machine_fit import machine_fit
from intarsia.autoschedule.features.store_analysis import StoreAnalysis

MACHINE_FEATURES: Final = (
    *("machine_vector_fit", "machine_smooth_share", "machine_tile_vectors", "machine_tile_loads"),
    "machine_tile_spill",
    *("machine_cycles_issued", "machine_first_traffic", "machine_second_traffic", "machine_thread_balance"),
    "machine_thread_starts",
)
"""Names of the features. Shares are from 0 to 1, the spill is in registers, cycles and bytes are totals."""


def machine_features(store: StoreAnalysis, machine: Machine) -> list[float]:
    """Return the features of `MACHINE_FEATURES` of a store, not yet on a logarithmic scale."""
    fit = machine_fit(store, machine)
    return [
        fit.vector_fit,
        fit.smooth_share,
        fit.tile_vectors,
        fit.loads,
        max(0.0, fit.tile_vectors - machine.vector_registers),
        store.iterations / (fit.lanes * fit.vector_fit),
        store.iterations * fit.first_traffic,
        store.iterations * fit.second_traffic,
        fit.balance,
        fit.starts,
    ]
