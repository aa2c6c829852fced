"""Quality of the result of `tune` by budget, and its gain from an earlier run of a related model.

A model is tuned with each budget, each time with a new database, as on a new machine. The winners are then
measured interleaved in one process. A ratio is the time of the winner of the longest budget over that of
another one, so that 0.95 means 95 % of the final speed. Seconds are the wall time of `tune`, building and
verifying included; a budget counts measurements only. With --family the second model of a family is tuned
with the smallest budget twice: after the first one with the same database, and with a new database.

Usage: python -m benchmarks.time_to_result [NAME ...] [--budgets 5s 20s 60s 180s] [--threads N]
       [--seconds S] [--family] [--json] [--markdown]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from onnx import ModelProto

import intarsia as ia
from intarsia.driver.budget import parse_budget
from intarsia.driver.result import TuneResult
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import bert, build_model, resnext50
from intarsia.frontend.zoo.transformer import TextSize
from intarsia.ir import IRModule
from intarsia.measure.database import Database
from intarsia.measure.inputs import random_inputs
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.target.cpu import usable_cores

MODELS: Final = ("resnet50", "densenet121", "inception_v2", "mobilenet_v2", "efficientnet_b0", "resnext50")
HEADER: Final = ("model", "budget", "tune took, s", "candidates", "winner", "of final speed (95 %)")
LESS: Final = TextSize(layers=6, width=768, heads=12, sequence=64, vocabulary=30522, positions=512)
FAMILIES: Final[Mapping[str, tuple[str, Callable[[], ModelProto]]]] = {
    "resnext50": ("resnext101", partial(resnext50.build, 1, blocks=(3, 4, 23, 3))),
    "bert_base": ("bert of 6 layers, 64 tokens", partial(bert.build, LESS, 1)),
}
"""The second model of each family: its name and builder, by the name of the first model."""


@dataclass(frozen=True)
class TuningOutcome:
    """Result of a tuning run, with a description of the run."""

    how: str
    result: TuneResult


@contextmanager
def open_new_database() -> Iterator[Database]:
    """Open a new temporary database."""
    with TemporaryDirectory() as folder, Database.open(Path(folder, "measurements.db")) as database:
        yield database


def tune_with_budgets(module: IRModule, budgets: list[str], threads: int) -> list[TuningOutcome]:
    """Tune a model with each budget."""
    outcomes = []
    for budget in budgets:
        with open_new_database() as database:
            outcomes.append(
                TuningOutcome(budget, ia.tune(module, budget=budget, threads=threads, database=database))
            )
    return outcomes


def tune_family(first: IRModule, second: IRModule, budgets: list[str], threads: int) -> list[TuningOutcome]:
    """Tune the second model with the smallest budget, alone and after the first one, and with the longest."""
    least, longest = budgets[0], budgets[-1]
    tune = partial(ia.tune, threads=threads)
    with open_new_database() as shared:
        tune(first, budget=longest, database=shared)
        after = TuningOutcome(f"{least} after a relative", tune(second, budget=least, database=shared))
    return [
        *tune_with_budgets(second, [least], threads),
        after,
        *tune_with_budgets(second, [longest], threads),
    ]


def compare_winners(
    name: str, module: IRModule, outcomes: list[TuningOutcome], seconds: float
) -> Iterator[dict[str, Any]]:
    """Time the winners interleaved, and yield their rows; the last one is the reference."""
    inputs = random_inputs(module["main"])
    arrays = [inputs[info.name] for info in outcomes[-1].result.executable.inputs]
    calls = {outcome.how: partial(outcome.result.executable.run_flat, *arrays) for outcome in outcomes}
    comparison = time_interleaved(calls, TimingPolicy(max_seconds=seconds / len(calls)))
    for outcome in outcomes:
        ratio = comparison.ratio(outcomes[-1].how, outcome.how)
        yield {
            "model": name,
            "budget": outcome.how,
            "seconds": outcome.result.seconds,
            "candidates": len(outcome.result.candidates),
            "winner": outcome.result.chosen.name,
            "of_final": [ratio.ratio, ratio.low, ratio.high],
        }
        outcome.result.executable.close()


def line(row: Mapping[str, Any]) -> tuple[str, ...]:
    ratio, low, high = row["of_final"]
    shown = f"{ratio:.3f} ({low:.3f} to {high:.3f})"
    cells = (row["model"], row["budget"], f"{row['seconds']:.0f}", str(row["candidates"]), row["winner"])
    return (*cells, shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--budgets", nargs="+", default=["5s", "20s", "60s", "180s"])
    parser.add_argument("--threads", type=int, default=usable_cores(Path("/")))
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--family", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    separator = " | " if options.markdown else "  "
    budgets = sorted(options.budgets, key=parse_budget)
    records: list[dict[str, Any]] = []
    if not options.json:
        print(separator.join(HEADER), flush=True)
        if options.markdown:
            print("|".join("---" for _ in HEADER))
    for requested in options.names or (FAMILIES if options.family else MODELS):
        name, module = requested, from_onnx(build_model(requested))
        if options.family:
            first, (name, build) = module, FAMILIES[requested]
            module = from_onnx(build())
            outcomes = tune_family(first, module, budgets, options.threads)
        else:
            outcomes = tune_with_budgets(module, budgets, options.threads)
        for row in compare_winners(name, module, outcomes, options.seconds):
            records.append(row)
            if not options.json:
                print(separator.join(line(row)), flush=True)
    if options.json:
        print(json.dumps(records, indent=2))


if __name__ == "__main__":
    main()
