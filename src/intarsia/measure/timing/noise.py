"""Is this machine quiet enough to measure on: the same work again and again, and what the system says.

Two kernels alternate on one thread, each sample a few milliseconds: exponentials of numbers that fit into a
cache of the core, which show a core that is shared, throttled or changes its frequency, and the sum of two
long arrays, which shows neighbours in the last cache and on the memory bus.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from intarsia.measure.timing.clock import MONOTONIC_CLOCK, Clock
from intarsia.measure.timing.system_load import LoadWatch, SystemLoad
from intarsia.measure.timing.timing import Sample, TimingPolicy, take_sample, timing_of, warm_up

COMPUTE_ELEMENTS = 1 << 13
"""Elements of each of the two float64 arrays of the compute kernel: 64 KiB each."""

MEMORY_ELEMENTS = 8 << 20
"""Elements of each of the three float32 arrays of the memory kernel: 32 MiB each."""

SELF_TEST = TimingPolicy(
    warmup_seconds=0.1,
    warmup_calls=3,
    repeats=2000,
    min_repeats=20,
    min_repeat_seconds=0.005,
    max_seconds=2.5,
)
"""Five seconds for the two kernels."""


@dataclass(frozen=True, slots=True)
class KernelNoise:
    """How steadily one kernel ran.

    Attributes:
        name: The kernel.
        samples: Seconds per call, in the order they were taken; at least two.
    """

    name: str
    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """Seconds per call."""
        return statistics.median(self.samples)

    @property
    def mad(self) -> float:
        """Median absolute deviation from the median, over the median: half of the samples are this close."""
        median = self.median
        return statistics.median(abs(sample - median) for sample in self.samples) / median

    @property
    def tail(self) -> float:
        """The 95th percentile over the median, less 1: one in twenty is disturbed by more than this."""
        return statistics.quantiles(self.samples, n=20, method="inclusive")[-1] / self.median - 1

    @property
    def drift(self) -> float:
        """The median of the last third over that of the first third, less 1: positive if it became slower."""
        third = max(1, len(self.samples) // 3)
        return statistics.median(self.samples[-third:]) / statistics.median(self.samples[:third]) - 1


@dataclass(frozen=True, slots=True)
class NoiseReport:
    """The result of the self-test.

    Attributes:
        kernels: Noise of each kernel.
        load: Load of the system during the test.
    """

    kernels: tuple[KernelNoise, ...]
    load: SystemLoad


def noise_self_test(
    kernels: Mapping[str, Callable[[], object]] | None = None,
    policy: TimingPolicy = SELF_TEST,
    clock: Clock = MONOTONIC_CLOCK,
    root: Path = Path("/"),
) -> NoiseReport:
    """Time the kernels interleaved for about `policy.max_seconds` each.

    Args:
        kernels: Functions to time, by name; default: "compute" and "memory".
        policy: Limits of the timing.
        clock: Function that returns the time in nanoseconds.
        root: Root of the file system with `proc` and `sys`.
    """
    kernels = reference_kernels() if kernels is None else kernels
    watch = LoadWatch.begin(root)
    budget = policy.max_seconds * 1e9 * len(kernels)
    start = clock()
    calls = {name: warm_up(function, policy, clock) for name, function in kernels.items()}
    samples: dict[str, list[Sample]] = {name: [] for name in kernels}
    for done in range(policy.repeats):
        if done >= policy.min_repeats and clock() - start > budget:
            break
        for name, function in kernels.items():
            samples[name].append(take_sample(function, calls[name], policy, clock))
    found = tuple(KernelNoise(name, timing_of(taken).samples) for name, taken in samples.items())
    return NoiseReport(found, watch.end())


def reference_kernels() -> Mapping[str, Callable[[], object]]:
    """The two kernels on data of their own: "compute" is bound by the CPU, "memory" by its memory."""
    generator = np.random.default_rng(0)
    values = generator.random(COMPUTE_ELEMENTS)
    powers = np.empty_like(values)
    first, second = generator.random((2, MEMORY_ELEMENTS), np.float32)
    total = np.empty_like(first)
    return {
        "compute": lambda: np.exp(values, out=powers),
        "memory": lambda: np.add(first, second, out=total),
    }
