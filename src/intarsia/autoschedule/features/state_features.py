"""Features of the states of a task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intarsia.autoschedule.features.feature_names import MAX_BUFFERS, feature_names
from intarsia.autoschedule.features.lowered_state import lower_state
from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.features.per_store import store_features, unroll_steps
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class FeatureOptions:
    """Selection of the features that a model sees.

    Attributes:
        max_buffers: Maximum number of buffers of a store that have features.
        machine: Machine for the columns of `MACHINE_FEATURES`; None for Ansor's columns only.
    """

    max_buffers: int = MAX_BUFFERS
    machine: Machine | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return feature_names(self.max_buffers, self.machine is not None)


def state_features(
    task: SearchTask, state: LoopState, options: FeatureOptions | None = None
) -> NDArray[np.float32]:
    """Return the features of a state (`per_store_features`); one row of zeros if it cannot be lowered."""
    chosen = options or FeatureOptions()
    lowered = lower_state(task, state)
    if lowered is None:
        return np.zeros((1, len(chosen.names)), np.float32)
    steps = unroll_steps(lowered.function)
    return store_features(lowered.stores, steps, task.hardware, chosen.max_buffers, chosen.machine)


def is_failed(features: NDArray[np.float32]) -> bool:
    """Whether these are the features of a state that cannot be lowered: a single row of zeros."""
    return len(features) > 0 and not features.any()
