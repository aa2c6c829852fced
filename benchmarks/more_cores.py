"""Time of native programs on machines with more cores than this one has, simulated by the machine model.

A program is planned for each number of threads and its parallel loops are run on simulated cores: which core
computes which iterations, which lines of memory it gets from a core that wrote them last, how long claims
of chunks and ends of loops take, and how long cores wait for the last one. On one core a kernel takes its
bound by the machine model, or, with --measured, the shortest time that one thread takes for the kernel that
is scheduled for so many threads (it is compiled for each number). Bandwidth of memory that cores share and
clusters of cores are left out, so that speedups are upper limits.

Usage: python -m benchmarks.more_cores [NAME or FILE.onnx ...] [--cores N ...] [--kernels N] [--measured]
       [--json]
5 to 60 s for each model; with --measured that for each number of cores.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.kernel_limits import Machine

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.ir import Function, IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.native.cores.plan_loops import bound_cycles, loops_of_plan
from intarsia.native.cores.simulate import SimulatedRun, simulate_plan
from intarsia.native.graph import PlanOptions, RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.passes import partition_whole
from intarsia.support.errors import IntarsiaError
from intarsia.toolchain.native.simplified import simplified

_CORES = (1, 2, 4, 8, 16, 32, 64)
_MODELS = ("squeezenet", "mobilenet_v2", "resnext50", "bert_tiny")


@dataclass(frozen=True)
class Row:
    """A model on a number of cores.

    Attributes:
        model: Name of the model.
        cores: Number of cores.
        cycles: Cycles of a run.
        speedup: Cycles on one core over that.
        waiting: Share of the time of all cores in which they wait.
        moved_bytes: Bytes that cores got from others, which wrote them last.
        run: The simulated run.
    """

    model: str
    cores: int
    cycles: float
    speedup: float
    waiting: float
    moved_bytes: int
    run: SimulatedRun

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return asdict(self)


def measured_cycles(module: IRModule, plan: RegionPlan, threads: int) -> list[float]:
    """Return the cycles that one thread takes for each kernel of a program for a number of threads.

    Raises:
        IntarsiaError: The program that is built has other kernels than the plan.
    """
    hertz = Machine.measured(1).hertz
    target = ia.Target.for_toolchain("native", threads=threads)
    arrays = list(random_inputs(module["main"]).values())
    with ia.build(partition_whole(module, target)) as program, program.clones(1, threads=1)[0] as alone:
        rows = [alone.profile(*arrays, repeats=10).rows for _ in range(3)]
    seconds = [min(row.seconds for row in column) for column in zip(*rows, strict=True)]
    if [row.kernel.name for row in rows[0]] != [kernel.name for kernel in plan.kernels]:
        raise IntarsiaError("the built program has other kernels than its plan")
    return [hertz * value for value in seconds]


def simulate_model(name: str, counts: Sequence[int], *, is_measured: bool) -> list[Row]:
    """Simulate a model of the zoo, or an .onnx file, on several numbers of cores.

    Raises:
        IntarsiaError: Native does not run the model.
    """
    module: IRModule = ia.from_onnx(name if name.endswith(".onnx") else build_model(name))
    function: Function = simplified(module["main"])
    rows, alone = [], 0.0
    for cores in sorted({1, *counts}):
        isa = replace(Isa.host(), cores=cores)
        plan = plan_region(function, isa, PlanOptions(threads=cores))
        loops = loops_of_plan(plan, isa, cores)
        cycles = (
            measured_cycles(module, plan, cores)
            if is_measured
            else [bound_cycles(kernel, plan, isa) for kernel in plan.kernels]
        )
        run = simulate_plan(plan, loops, cycles, cores, isa.machine)
        alone = run.cycles if cores == 1 else alone
        if cores in counts:
            speedup = alone / run.cycles
            row = Row(Path(name).stem, cores, run.cycles, speedup, run.waiting_share, run.moved_bytes, run)
            rows.append(row)
    return rows


def print_row(row: Row, kernels: int) -> None:
    """Print a row, and the kernels that lose most beyond an even share of their cycles."""
    print(
        f"{row.model:18} {row.cores:5} {row.cycles / 1e3:12.1f} {row.speedup:8.2f} "
        f"{row.waiting:8.0%} {row.moved_bytes / 1024:12.0f}",
        flush=True,
    )
    lost = sorted(row.run.kernels, key=lambda item: item.alone / row.cores - item.cycles)
    for kernel in lost[:kernels]:
        print(
            f"    {kernel.name:60.60} {kernel.cycles / 1e3:9.1f} of {kernel.alone / 1e3:9.1f}, "
            f"{kernel.moved_bytes / 1024:.0f} KiB, {kernel.barriers} loops"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=_MODELS)
    parser.add_argument("--cores", type=int, nargs="+", default=_CORES)
    parser.add_argument("--kernels", type=int, default=0, help="kernels that are shown of each row (0)")
    parser.add_argument("--measured", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    if not options.json:
        print(
            f"{'model':18} {'cores':>5} {'cycles, 1000':>12} {'speedup':>8} {'waiting':>8} {'moved, KiB':>12}"
        )
    for name in options.names:
        try:
            of_model = simulate_model(name, options.cores, is_measured=options.measured)
        except IntarsiaError as error:
            print(f"{name}: {error}")
            continue
        rows += of_model
        for row in () if options.json else of_model:
            print_row(row, options.kernels)
    if options.json:
        print(json.dumps([row.to_json() for row in rows], indent=1))


if __name__ == "__main__":
    main()
