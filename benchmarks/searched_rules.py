"""Drawn layers on which the schedule search beats the rules, by what the winner does otherwise.

Layers are drawn as in the sweep. Each kernel of a layer that the rules schedule as a family of choices
(tile, order, unrolled loops) is searched with a bounded number of trials, from the rule's own schedule on.
The rule and the winner are then timed interleaved in this process. A winner that is faster by more than a
tenth is a case, and the choices in which it differs are the cause; "other loops" are those of another sketch.

Usage: python -m benchmarks.searched_rules [--seed N | --seeds N [N ...]] [--layers N] [--trials N]
       [--threads N] [--families NAME [NAME ...]] [--isa CPU] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from benchmarks.native_kernels import Array, Run, format_table
from benchmarks.native_search import SearchSettings, compile_schedule, replay_winner, search_schedule
from benchmarks.sweep.case import Case
from benchmarks.sweep.families import FAMILIES, draw_layers, write_layer

from intarsia.autoschedule.measuring.pool_measurer import PoolMeasurer
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import DType
from intarsia.measure.timing.host_lock import exclusive_host
from intarsia.native.dag import ComputeDAG
from intarsia.native.graph import PlanOptions, plan_region
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import infer_bound
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.named_cpus import named_cpu
from intarsia.native.schedule import default_state
from intarsia.native.schedule.families import schedule_family
from intarsia.native.schedule.schedule_task import work_of
from intarsia.native.te.operators import NotCoveredError
from intarsia.toolchain.native.simplified import simplified

LEAST_GAIN: Final = 1.1
"""Ratio of the times from which a winner is a case."""
_ROUNDS: Final = 7
_WINDOW: Final = 0.02
"""Seconds in which calls of a schedule are timed in each of some rounds."""
_LEAST_STEPS: Final = 1 << 14
_MOST_STEPS: Final = 1 << 28
"""Steps of kernels that are searched: shorter ones last as long as their call, longer ones take minutes."""
_ROUND: Final = 16
"""Schedules that are measured between two updates of the cost model: a few rounds of few trials."""
HEADER: Final = ("layer", "kernel", "rule us", "search us", "ratio", "cause")


@dataclass(frozen=True)
class Comparison:
    """The rule and the search on one kernel.

    Attributes:
        layer: Text of the drawn layer.
        kernel: Name of the kernel.
        rule: Least seconds of the schedule by rule.
        search: Least seconds of the winner of the search.
        causes: Differences of the winner, as "pixels 8 to 4"; empty if it is the rule's schedule.
    """

    layer: str
    kernel: str
    rule: float
    search: float
    causes: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Time by rule over that of the winner."""
        return self.rule / self.search

    @property
    def is_case(self) -> bool:
        """Whether the winner has another schedule, which is faster by more than a tenth."""
        return bool(self.causes) and self.ratio >= LEAST_GAIN

    @property
    def row(self) -> tuple[str, ...]:
        """Cells of the table."""
        times = (f"{seconds * 1e6:.1f}" for seconds in (self.rule, self.search))
        return self.layer, self.kernel, *times, f"{self.ratio:.2f}", ", ".join(self.causes)


def searchable_kernels(case: Case, folder: Path, isa: Isa, threads: int) -> list[tuple[str, ComputeDAG]]:
    """Return the names and DAGs of the kernels of a layer that are scheduled by a family of choices."""
    path = str(folder / "layer.onnx")
    onnx.save(write_layer(case).model(), path)
    try:
        plan = plan_region(simplified(from_onnx(path)["main"]), isa, PlanOptions(threads=threads))
    except NotCoveredError:
        return []
    return [
        (kernel.name, kernel.dag)
        for kernel in plan.kernels
        if not kernel.is_conversion
        and _LEAST_STEPS <= work_of(kernel.dag.ops) <= _MOST_STEPS
        and all(tensor.dtype is DType.FLOAT32 for tensor in (*kernel.dag.placeholders, *kernel.dag.outputs))
        and len(kernel.dag.outputs) == 1
        and schedule_family(kernel.dag, isa, threads) is not None
    ]


def compare_kernel(
    layer: str, kernel: str, dag: ComputeDAG, settings: SearchSettings, workers: PoolMeasurer
) -> Comparison | None:
    """Search a kernel, and time the rule and the winner interleaved; None if no trial succeeded."""
    log = search_schedule(dag, settings, 0, workers)
    if not log.winner:
        return None
    states = default_state(dag, settings.isa, settings.threads), replay_winner(dag, log.winner)
    inputs = _contents(dag)
    runs = [compile_schedule(dag, state, settings, inputs)[0] for state in states]
    seconds: tuple[list[float], list[float]] = ([], [])
    with exclusive_host():
        for _ in range(_ROUNDS):
            for times, run in zip(seconds, runs, strict=True):
                times.append(_least_call(run))
    rule, winner = map(min, seconds)
    return Comparison(layer, kernel, rule, winner, causes_of(dag, states[1], settings))


def _least_call(run: Run) -> float:
    """Return the seconds of the shortest call in a window of time: other processes only add to a call."""
    run()
    least, end = math.inf, time.perf_counter() + _WINDOW
    while (begin := time.perf_counter()) < end:
        run()
        least = min(least, time.perf_counter() - begin)
    return least


def causes_of(dag: ComputeDAG, winner: LoopState, settings: SearchSettings) -> tuple[str, ...]:
    """Return the choices of a winner that differ from the rule's; ("other loops",) for other sketches."""
    family = schedule_family(dag, settings.isa, settings.threads)
    choice = None if family is None else family.choice_of(infer_bound(dag, winner))
    if family is None or choice is None:
        return ("other loops",)
    return tuple(
        f"{knob.name} {default} to {value}"
        for knob, default, value in zip(family.knobs, family.default, choice, strict=True)
        if value != default
    )


def _contents(dag: ComputeDAG) -> dict[str, Array]:
    generator = np.random.default_rng(0)
    return {
        tensor.buffer.name: generator.standard_normal(tensor.shape, np.float32) for tensor in dag.placeholders
    }


def describe(comparisons: Sequence[Comparison], trials: int) -> str:
    """Return the table of the cases, and how often each cause occurs."""
    cases = sorted((item for item in comparisons if item.is_case), key=lambda item: -item.ratio)
    mean = statistics.geometric_mean([item.ratio for item in comparisons]) if comparisons else 1.0
    causes = Counter(cause.split()[0] for item in cases for cause in item.causes)
    lines = [
        f"{len(comparisons)} kernels, {trials} trials each: rule over search {mean:.3f}; "
        f"{len(cases)} with {LEAST_GAIN} and more",
        format_table(HEADER, [item.row for item in cases], True),
        *(f"{name}: {count}" for name, count in causes.most_common()),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", "--seeds", dest="seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--layers", type=int, default=20, help="layers of each seed (20)")
    parser.add_argument(
        "--trials", type=int, default=48, help="schedules that are measured for a kernel (48)"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, help="only drawn layers of these families")
    parser.add_argument("--isa", help="as if on this CPU, such as haswell")
    parser.add_argument("--json", type=Path, help="file for all comparisons")
    options = parser.parse_args()
    isa = named_cpu(options.isa, 1) if options.isa else Isa.host()
    settings = SearchSettings(isa, options.threads, options.trials, round=_ROUND)
    drawn = [case for seed in options.seeds for case in draw_layers(seed, options.layers, 0)]
    comparisons: list[Comparison] = []
    with tempfile.TemporaryDirectory() as folder, PoolMeasurer.open(isa, workers=options.threads) as workers:
        for case in (case for case in drawn if case.family in (options.families or FAMILIES)):
            for kernel, dag in searchable_kernels(case, Path(folder), isa, options.threads):
                comparison = compare_kernel(case.text, kernel, dag, settings, workers)
                if comparison is not None:
                    comparisons.append(comparison)
                    print(*comparison.row, file=sys.stderr, flush=True)
    print(describe(comparisons, options.trials))
    if options.json:
        options.json.write_text(json.dumps([asdict(item) for item in comparisons], indent=1))


if __name__ == "__main__":
    main()
