"""The names of features, in order."""

from __future__ import annotations

from typing import Final

from intarsia.autoschedule.features.arithmetic_intensity import SAMPLES
from intarsia.autoschedule.features.buffer_features import BUFFER_FEATURES
from intarsia.autoschedule.features.gpu_features import GPU_FEATURES
from intarsia.autoschedule.features.loop_annotations import ANNOTATIONS, POSITIONS
from intarsia.autoschedule.features.machine_features import MACHINE_FEATURES
from intarsia.autoschedule.features.operation_counts import COUNTS

MAX_BUFFERS: Final = 5
"""Maximum number of buffers of a store that have features."""
ALLOCATION_FEATURES: Final = ("alloc_size", "alloc_prod", "alloc_outer_prod", "alloc_inner_prod")
"""Features of the allocation of the written buffer."""
OUTER_FEATURES: Final = ("outer_prod", "num_loops", "auto_unroll_max_step")
"""Features of the loops around a store."""


def feature_names(max_buffers: int = MAX_BUFFERS, with_machine: bool = False) -> tuple[str, ...]:
    """Return the columns of `per_store_features`: Ansor's 164 with five buffers; more with a machine."""
    annotations = (
        f"{kind}_{name}"
        for kind, _ in ANNOTATIONS
        for name in ("num", "prod", "len", *(f"type.{position}" for position in POSITIONS))
    )
    buffers = (f"B{number}.{name}" for number in range(max_buffers) for name in BUFFER_FEATURES)
    curve = (f"arith_intensity_curve_{number}" for number in range(SAMPLES))
    machine = MACHINE_FEATURES if with_machine else ()
    return (
        *(*COUNTS, *annotations, *GPU_FEATURES, *buffers, *curve),
        *(*ALLOCATION_FEATURES, *OUTER_FEATURES, *machine),
    )
