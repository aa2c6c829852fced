"""Native kernels after a short search, against ONNX Runtime and OpenVINO: convolutions, products, rows.

Usage: python -m benchmarks.tuned_kernels [--trials 200] [--sets convolution dense rows] [--only TEXT]
       [--threads 2] [--rounds 20] [--folder F] [--json] [--markdown]

Each kernel is searched with at most `--trials` trials, the default schedule first. Then the winner, the
default schedule and the engines are measured interleaved, as in `native_kernels.py`: engines are bound to
arrays, so that nothing is copied. Kernels are those of the other benchmarks, as they run in the middle of a
region: with blocked tensors for convolutions, and packed constants. A ratio is the time of the faster engine
over that of the kernel, of medians, and of the best times in brackets; above 1 native is faster. The peak is
that of multiply-adds in registers on one thread, measured in the same rounds, multiplied by the number of
threads. Each search is saved in `--folder` when it ends: the same command resumes after an interruption.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from benchmarks.kernel_sets import SETS, KernelCase, kernel_cases
from benchmarks.native_kernels import format_table, peak_run, time_interleaved_runs
from benchmarks.native_search import MODELS, SearchSettings, compile_schedule, replay_winner
from benchmarks.schedule_searches import SearchFile, run_native_search

from intarsia.measure.timing.host_lock import exclusive_host
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state

ENGINES = ("onnxruntime", "openvino")
HEADER = (
    *("kernel", "trials", "s", "us", "of peak", "default / tuned", "onnxruntime / tuned", "openvino / tuned"),
    "faster engine / tuned",
)
GOALS = "goals: a geometric mean of 1.10, nothing under 0.90"


@dataclass(frozen=True)
class Row:
    """A searched and timed kernel.

    Attributes:
        group: Set of kernels.
        name: Name of the kernel.
        trials: Number of measured schedules.
        seconds: Duration of the search in seconds.
        medians: Median seconds of a call by contender.
        bests: Lowest seconds of a call by contender.
        share: Share of the peak; None for memory-bound operators.
    """

    group: str
    name: str
    trials: int
    seconds: float
    medians: dict[str, float]
    bests: dict[str, float]
    share: float | None

    @property
    def ratio(self) -> float:
        """Ratio of the faster engine's median to the tuned kernel's."""
        return min(self.medians[name] for name in ENGINES) / self.medians["tuned"]

    @property
    def best_ratio(self) -> float:
        """Ratio of the faster engine's best time to the tuned kernel's."""
        return min(self.bests[name] for name in ENGINES) / self.bests["tuned"]

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of the row of the table."""
        tuned = self.medians["tuned"]
        ratios = (
            f"{self.medians[name] / tuned:.2f} ({self.bests[name] / self.bests['tuned']:.2f})"
            for name in ("default", *ENGINES)
        )
        share = "" if self.share is None else f"{100 * self.share:.0f} %"
        both = f"{self.ratio:.2f} ({self.best_ratio:.2f})"
        return (
            self.name,
            str(self.trials),
            f"{self.seconds:.0f}",
            f"{1e6 * tuned:.1f}",
            share,
            *ratios,
            both,
        )


def measure_case(case: KernelCase, settings: SearchSettings, search_file: SearchFile, rounds: int) -> Row:
    """Search a kernel, unless the file has the search, and time the winner against the engines."""
    kernel = case.kernel(settings.isa)
    search = run_native_search(kernel.dag, case.name, settings, 0, search_file)
    default = default_state(kernel.dag, settings.isa, settings.threads)
    winner = replay_winner(kernel.dag, search.log.winner) if search.log.winner else default
    tuned, result = compile_schedule(kernel.dag, winner, settings, kernel.inputs)
    before, _ = compile_schedule(kernel.dag, default, settings, kernel.inputs)
    expected = np.zeros(kernel.shape, np.float32)
    peak, operations = peak_run(settings.isa)
    runs = {"tuned": tuned, "default": before, **kernel.engines(expected, settings.threads), "peak": peak}
    with exclusive_host():
        times = time_interleaved_runs(runs, rounds, settings.threads)
    largest = float(np.abs(expected).max())
    np.testing.assert_allclose(kernel.plain(result), expected, rtol=1e-3, atol=1e-4 * largest)
    medians = {name: timing.median for name, timing in times.items()}
    most = settings.threads * operations / times["peak"].best
    share = None if case.operations is None else case.operations / medians["tuned"] / most
    bests = {name: timing.best for name, timing in times.items()}
    return Row(case.group, case.name, len(search.log.points), search.log.whole, medians, bests, share)


def summary(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return rows of geometric means and lowest ratios, for each set and for all."""
    rows_of_sets = []
    for name in (*SETS, "all"):
        chosen = [row for row in rows if name in {row.group, "all"}]
        if chosen:
            ratios, bests = [row.ratio for row in chosen], [row.best_ratio for row in chosen]
            gains = [row.medians["default"] / row.medians["tuned"] for row in chosen]
            shares = [row.share for row in chosen if row.share is not None]
            peak = f"{100 * statistics.median(shares):.0f} %" if shares else ""
            means = (f"{_mean(values):.3f}" for values in (ratios, bests, gains))
            least = min(chosen, key=lambda row: row.ratio)
            rows_of_sets.append((name, str(len(chosen)), *means, f"{least.ratio:.2f}: {least.name}", peak))
    return rows_of_sets


def _mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


SUMMARY_HEADER = (
    *("set", "kernels", "faster engine / tuned, geometric mean", "of best times", "default / tuned"),
    *("least", "median of peak"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--only", default="", help="kernels that have this text in their names")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--model", choices=tuple(MODELS), default="trees")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "intarsia-autoschedule")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    isa = Isa.host()
    settings = SearchSettings(isa, given.threads, given.trials, has_default=True, model=given.model)
    search_file = SearchFile(given.folder / "kernels.jsonl")
    rows = []
    for case in kernel_cases():
        if case.group in given.sets and given.only in case.name:
            rows.append(measure_case(case, settings, search_file, given.rounds))
            if not given.json:
                print(" | ".join(rows[-1].cells), flush=True)
    if given.json:
        print(json.dumps([{**asdict(row), "ratio": row.ratio} for row in rows]))
        return
    print(f"\n{given.threads} threads; {GOALS}\n")
    print(format_table(HEADER, [row.cells for row in rows], given.markdown))
    print()
    print(format_table(SUMMARY_HEADER, summary(rows), given.markdown))


if __name__ == "__main__":
    main()
