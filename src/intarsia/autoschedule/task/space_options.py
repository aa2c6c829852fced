"""Limits of the space of schedules that is searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.native.machine.isa import Isa
from intarsia.support.errors import UsageError

UNROLL_STEPS: Final = (0, 16, 64, 512)
"""Values of the pragma `auto_unroll_max_step` (Ansor's for CPUs)."""


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """Limits of population and mutation rules; the defaults are Ansor's (SketchPolicy).

    Attributes:
        structure: Levels of tiles, outermost first: S of spatial axes, R of reduction axes; "" for those of
            the hardware.
        max_innermost_split_factor: Maximum extent of the innermost part of a split.
        max_vectorize_size: Maximum extent of a vectorised loop.
        imperfect_share: Share of splits, from 0 to 1, that may leave a remainder where few lengths
            divide an extent (1009, 17).
        parallel_per_core: Loops are fused to a parallel one until it has more iterations than this times
            the number of cores.
        unroll_steps: Values for `auto_unroll_max_step`.
        disable_change_compute_location: Whether stages stay where sketches put them.
        tile_size_weight: Relative probability of tile size mutations.
        auto_unroll_weight: Relative probability of unroll pragma mutations.
        compute_location_weight: Relative probability of compute location mutations.
        parallel_weight: Relative probability of mutations of the fused parallel loop.
        most_failures: Number of consecutive invalid or repeated samples after which the space counts as
            exhausted.
        micro_kernels: Instruction set for which native's schedule families are
            searched too (`MicroKernelSketch`), or None; not in Ansor.
        micro_kernel_share: Share of the samples that are of the schedule family, from 0 to 1, where there is
            one.
        micro_kernel_weight: Relative probability of mutations of a knob of the family.

    Raises:
        UsageError: A limit is below 1, a share is not from 0 to 1, no unroll step is given, or a weight is
            negative, or all are 0.
    """

    structure: str = ""
    max_innermost_split_factor: int = 64
    max_vectorize_size: int = 16
    imperfect_share: float = 0.0
    parallel_per_core: int = 16
    unroll_steps: tuple[int, ...] = UNROLL_STEPS
    disable_change_compute_location: bool = False
    tile_size_weight: float = 0.90
    auto_unroll_weight: float = 0.04
    compute_location_weight: float = 0.05
    parallel_weight: float = 0.01
    most_failures: int = 200
    micro_kernels: Isa | None = None
    micro_kernel_share: float = 0.75
    micro_kernel_weight: float = 1.0

    def __post_init__(self) -> None:
        names = "max_innermost_split_factor", "max_vectorize_size", "parallel_per_core", "most_failures"
        for name in names:
            if getattr(self, name) < 1:
                raise UsageError(f"option {name} is {getattr(self, name)}; expected at least 1")
        if set(self.structure) - set("SR"):
            raise UsageError(f"structure {self.structure!r} is no sequence of S and R, such as SSRSRS")
        for name in ("imperfect_share", "micro_kernel_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"option {name} is {getattr(self, name)}; expected 0 to 1")
        if not self.unroll_steps:
            raise UsageError("option unroll_steps is empty; expected at least one number, 0 for no unrolling")
        if self.micro_kernel_weight < 0 or min(self.weights) < 0 or not any(self.weights):
            weights = *self.weights, self.micro_kernel_weight
            raise UsageError(
                f"mutation weights {weights}; expected none below 0, and one of the first four above"
            )

    @property
    def weights(self) -> tuple[float, ...]:
        """Weights of Ansor's mutations: tile size, unrolling, compute location, parallel loop."""
        return (
            self.tile_size_weight,
            self.auto_unroll_weight,
            self.compute_location_weight,
            self.parallel_weight,
        )


GPU_SPACE: Final = SpaceOptions(unroll_steps=(0, 16, 64, 512, 1024))
"""Limits of the space for GPUs: unroll pragmas are Ansor's."""
