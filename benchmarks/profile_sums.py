"""Sums of profiles against the time end to end, and the cost of profiling that is off.

A profile splits a run into kernels and the time outside of them. Their sum is compared with the time end to
end of the same program without a profiler, interleaved in the same process. The goal is a ratio within 3 % of
1 on ResNet-50, on every toolchain, with 1 and with 2 threads. Each side is the shortest of all rounds, as
other processes make a round longer, and never shorter. Then two executables of one program are timed
interleaved, one of which was profiled before: profiling that is off costs nothing if the interval of their
ratio contains 1.

Usage: python -m benchmarks.profile_sums [--model NAME] [--toolchains NAME ...] [--threads N ...] [--rounds R]
       [--repeats N] [--seconds S] [--json]
About 4 minutes on a quiet machine with two cores.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from functools import partial

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable

GOAL = 0.03
"""Largest allowed difference of the ratio from 1."""


@dataclass(frozen=True)
class Row:
    """A toolchain with a number of threads.

    Attributes:
        toolchain: Name of the toolchain.
        threads: Number of threads.
        kernel_ms: Milliseconds of all kernels in the round whose profiled runs are the shortest.
        outside_ms: Milliseconds outside of kernels in that round.
        end_to_end_ms: Milliseconds end to end without a profiler, the shortest of the rounds.
        kernels_ratio: Kernels over the time end to end.
        ratio: Kernels and the time outside over the time end to end.
        least: Least ratio of a round.
        largest: Largest ratio of a round.
        off_ratio: Latency after a profile over that of an executable that was never profiled.
        off_low: Lower end of the 95 % interval of that ratio.
        off_high: Upper end of the interval.
    """

    toolchain: str
    threads: int
    kernel_ms: float
    outside_ms: float
    end_to_end_ms: float
    kernels_ratio: float
    ratio: float
    least: float
    largest: float
    off_ratio: float
    off_low: float
    off_high: float

    @property
    def is_within_goal(self) -> bool:
        """Whether the sum is close enough to the time end to end."""
        return abs(self.ratio - 1) <= GOAL

    def __str__(self) -> str:
        verdict = "ok" if self.is_within_goal else "MISSED"
        off = f"{self.off_ratio:.3f} ({self.off_low:.3f} to {self.off_high:.3f})"
        return (
            f"{self.toolchain:11} {self.threads} thread{'' if self.threads == 1 else 's'}: kernels "
            f"{self.kernel_ms:.2f} + outside {self.outside_ms:.2f} ms, end to end {self.end_to_end_ms:.2f} "
            f"ms; kernels {self.kernels_ratio:.3f}, sum {self.ratio:.3f} ({self.least:.3f} to "
            f"{self.largest:.3f}) {verdict}; off {off}"
        )


def compile_for(module: IRModule, toolchain: str, threads: int) -> Executable:
    """Compile a program for a toolchain."""
    target = ia.Target.for_toolchain(toolchain).with_options(threads=threads)
    return ia.build(partition_whole(module, target))


def measure(module: IRModule, toolchain: str, threads: int, rounds: int, repeats: int, seconds: float) -> Row:
    """Profile a program several times, and compare an executable that was profiled with one that was not."""
    arrays = list(random_inputs(module["main"]).values())
    with (
        compile_for(module, toolchain, threads) as profiled,
        compile_for(module, toolchain, threads) as plain,
    ):
        profiles = [profiled.profile(*arrays, repeats=repeats) for _ in range(rounds)]
        calls = {"profiled": partial(profiled, *arrays), "plain": partial(plain, *arrays)}
        off = time_interleaved(calls, TimingPolicy(repeats=200, max_seconds=seconds / 2)).ratio(
            "profiled", "plain"
        )
    ratios = [profile.seconds / profile.end_to_end_seconds for profile in profiles]
    shortest = min(profiles, key=lambda profile: profile.seconds)
    end_to_end = min(profile.end_to_end_seconds for profile in profiles)
    return Row(
        toolchain,
        threads,
        1e3 * shortest.kernel_seconds,
        1e3 * shortest.overhead_seconds,
        1e3 * end_to_end,
        shortest.kernel_seconds / end_to_end,
        shortest.seconds / end_to_end,
        min(ratios),
        max(ratios),
        off.ratio,
        off.low,
        off.high,
    )


def main() -> None:
    """Print a line for each toolchain and number of threads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--toolchains", nargs="+", default=["native", "onnxruntime", "openvino"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5, help="profiles of each program")
    parser.add_argument("--repeats", type=int, default=20, help="runs of a profile")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="seconds of the comparison with profiling off"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    module = ia.from_onnx(build_model(options.model))
    rows = []
    for threads in options.threads:
        for toolchain in options.toolchains:
            row = measure(module, toolchain, threads, options.rounds, options.repeats, options.seconds)
            rows.append(row)
            if not options.json:
                print(row, flush=True)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))


if __name__ == "__main__":
    main()
