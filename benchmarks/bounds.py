"""Share of this machine's bound that whole models reach on native, and what limits the rest.

The bound of a kernel is the longer of two times: its multiply-adds at the peak of the pipes, and its tensors
at the bandwidth of the smallest cache that holds them, or of memory. Where Winograd's algorithm fits, it is
that of the algorithm with the lower bound: Winograd's has fewer products, in whole tiles, but transforms,
whose tiles are written and read in the second-level cache, and larger weights. Weights come from memory if
all of them are more than the last-level cache. The bound of a model is the sum, for its kernels run one after
the other. The peak is timed, bandwidths and barriers are those of the machine model: `intarsia doctor
--calibrate` measures them, else they are defaults of the CPU's family.

Of a model under 80 %, a sentence says which kernels lose the time and what limits each; it is generated from
the kernels' loops. Percentages in it are shares of the time that is lost.

Usage: python -m benchmarks.bounds [NAME or FILE.onnx ...] [--threads N ...] [--repeats N] [--rounds N]
       [--markdown] [--json]
15 to 60 s for each model on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.kernel_limits import Kernel, Limit, Machine

import intarsia as ia
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.native.graph import PlanOptions, plan_region
from intarsia.native.graph.region_plan import KernelPlan
from intarsia.passes import partition_whole
from intarsia.runtime.profile import ProfileRow
from intarsia.support.errors import IntarsiaError
from intarsia.target.machine_file import machine_file
from intarsia.toolchain.native.simplified import simplified

EXPLAINED: Final = 0.8
"""Share of the bound below which a model is explained."""
_LISTED: Final = 4
"""Largest number of limits in a sentence."""
_LEAST_LISTED: Final = 0.05
"""Least share of the lost time of a limit that is listed."""


@dataclass(frozen=True)
class Bound:
    """A model with its bound.

    Attributes:
        model: Name of the model.
        threads: Number of threads.
        seconds: Seconds of a run: the shortest times of its kernels and of what is outside of them together,
            or the shortest time without a profiler.
        kernels: Its kernels, in the order in which they run.
        outside: Shortest seconds of a profiled run outside of kernels.
    """

    model: str
    threads: int
    seconds: float
    kernels: tuple[Kernel, ...]
    outside: float

    @property
    def bound(self) -> float:
        """Least seconds of the model."""
        return sum(kernel.bound for kernel in self.kernels)

    @property
    def share(self) -> float:
        """Share of the bound that the model reaches."""
        return self.bound / self.seconds

    def reason(self) -> str:
        """Return the sentence that says where the time beyond the bound goes; "" if little of it does."""
        if self.share >= EXPLAINED:
            return ""
        by_limit: defaultdict[Limit, list[Kernel]] = defaultdict(list)
        for kernel in self.kernels:
            by_limit[kernel.limit()].append(kernel)
        lost = sum(kernel.lost for kernel in self.kernels) + self.outside
        parts = sorted(
            ((sum(k.lost for k in group), limit) for limit, group in by_limit.items()),
            reverse=True,
            key=lambda part: part[0],
        )
        clauses = [
            f"{seconds / lost:.0%} in {limit.value} ({_name_kernels(by_limit[limit])})"
            for seconds, limit in parts[:_LISTED]
            if seconds >= _LEAST_LISTED * lost
        ]
        if self.outside >= _LEAST_LISTED * lost:
            clauses.append(f"{self.outside / lost:.0%} between kernels and in the call from Python")
        return f"Of {1e3 * lost:.2f} ms beyond the bound, " + "; ".join(clauses) + "."

    def to_json(self) -> dict[str, Any]:
        """Return the record of the model."""
        limits = {limit.name: 0.0 for limit in Limit}
        for kernel in self.kernels:
            limits[kernel.limit().name] += kernel.lost
        return {
            "model": self.model,
            "threads": self.threads,
            "seconds": self.seconds,
            "bound_seconds": self.bound,
            "share": self.share,
            "lost_seconds": {name: value for name, value in limits.items() if value},
            "reason": self.reason(),
        }


def _name_kernels(kernels: Sequence[Kernel]) -> str:
    """Return the number of some kernels and the one that loses most, with its share of its bound."""
    worst = max(kernels, key=lambda kernel: kernel.lost)
    share = f"{worst.bound / worst.row.seconds:.0%} of its bound" if worst.bound else "no bound"
    rest = f" and {len(kernels) - 1} more" if len(kernels) > 1 else ""
    return f"{worst.row.label}, {share}{rest}"


def measure_bound(name: str, threads: int, repeats: int, rounds: int, machine: Machine) -> Bound:
    """Build a model with native, profile it several times, and return its bound, and the shortest times.

    On a busy machine no run of a large model is undisturbed, but each kernel is in one of them.

    Args:
        name: Name of a model of the zoo, or an .onnx file.
        threads: Number of threads.
        repeats: Number of runs of a profile.
        rounds: Number of profiles.
        machine: Roofs for that number of threads.

    Raises:
        IntarsiaError: Native does not run the model.
    """
    module: IRModule = ia.from_onnx(name if name.endswith(".onnx") else build_model(name))
    target = ia.Target.for_toolchain("native", threads=threads)
    arrays = list(random_inputs(module["main"]).values())
    with ia.build(partition_whole(module, target)) as program:
        profiles = [program.profile(*arrays, repeats=repeats) for _ in range(rounds)]
    plan = plan_region(simplified(module["main"]), machine.isa, PlanOptions(threads=threads))
    weights = {id(array): array.nbytes for item in plan.kernels for array in item.constants.values()}
    streams = sum(weights.values()) > machine.isa.caches.third
    kernels = tuple(
        Kernel(_shortest(rows), _planned(rows[0], plan.kernels), machine, streams)
        for rows in zip(*(profile.rows for profile in profiles), strict=True)
    )
    outside = min(profile.overhead_seconds for profile in profiles)
    whole = outside + sum(kernel.row.seconds for kernel in kernels)
    seconds = min(whole, *(profile.end_to_end_seconds for profile in profiles))
    return Bound(Path(name).stem, threads, seconds, kernels, outside)


def _shortest(rows: Sequence[ProfileRow]) -> ProfileRow:
    """Return a kernel with the shortest of its times in several profiles."""
    return replace(rows[0], seconds=min(row.seconds for row in rows))


def _planned(row: ProfileRow, kernels: Sequence[KernelPlan]) -> KernelPlan | None:
    """Return the plan of the kernel of a row, which has its name."""
    at = row.position[1]
    if 0 <= at < len(kernels) and kernels[at].name == row.kernel.name:
        return kernels[at]
    return next((kernel for kernel in kernels if kernel.name == row.kernel.name), None)


def summarise(bounds: Sequence[Bound]) -> Iterator[str]:
    """Yield the median and least share of the bound for each number of threads."""
    for threads in sorted({item.threads for item in bounds}):
        shares = {item.model: item.share for item in bounds if item.threads == threads}
        least = min(shares, key=shares.__getitem__)
        yield (
            f"{threads} thread{'' if threads == 1 else 's'}, {len(shares)} models: median "
            f"{statistics.median(shares.values()):.0%} of the bound, least {shares[least]:.0%} ({least}), "
            f"{sum(share >= EXPLAINED for share in shares.values())} from {EXPLAINED:.0%} on"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=[model.name for model in zoo()])
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--repeats", type=int, default=4, help="runs of a profile (4)")
    parser.add_argument("--rounds", type=int, default=12, help="profiles of each model (12)")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    file, bounds = machine_file(), []
    if not options.json:
        print(f"machine model: {'measured' if file.measured else f'defaults of {file.model.family}'}")
        header = ("model", "threads", "native, ms", "bound, ms", "of bound", "why")
        print(
            "| " + " | ".join(header) + " |\n|" + "---|" * len(header)
            if options.markdown
            else "  ".join(header)
        )
    for threads in options.threads:
        machine = Machine.measured(threads)
        for name in options.names:
            try:
                item = measure_bound(name, threads, options.repeats, options.rounds, machine)
            except IntarsiaError as error:
                print(f"{name}: {error}")
                continue
            bounds.append(item)
            if not options.json:
                cells = (
                    item.model,
                    str(threads),
                    f"{1e3 * item.seconds:.3f}",
                    f"{1e3 * item.bound:.3f}",
                    f"{item.share:.0%}",
                    item.reason(),
                )
                print("| " + " | ".join(cells) + " |" if options.markdown else "  ".join(cells), flush=True)
    print(
        json.dumps([item.to_json() for item in bounds], indent=1)
        if options.json
        else "\n".join(summarise(bounds))
    )


if __name__ == "__main__":
    main()
