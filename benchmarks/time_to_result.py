"""How soon `tune` has a good result, and what it gains from a run of its family before.

A model is tuned with each budget, each time with a new database, as on a new machine. The winners then run in
turns in one process; a ratio is the time of the winner of the longest budget to that of another one, so that
0.95 means 95 % of the final speed. The seconds are those that `tune` took from beginning to end, with
building and checking; a budget counts measurements only. With --family the second model of a family is tuned
with the least budget after the first one, in the same database, and beside it in a new one.

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
"""By the first model of a family the second one."""


@dataclass(frozen=True)
class Tuned:
    """What came of tuning: in words how it was done, and its result."""

    how: str
    result: TuneResult


@contextmanager
def new_database() -> Iterator[Database]:
    """One that is gone afterwards."""
    with TemporaryDirectory() as folder, Database.open(Path(folder, "measurements.db")) as database:
        yield database


def by_budget(module: IRModule, budgets: list[str], threads: int) -> list[Tuned]:
    """Tuned with each budget."""
    found = []
    for budget in budgets:
        with new_database() as database:
            found.append(Tuned(budget, ia.tune(module, budget=budget, threads=threads, database=database)))
    return found


def of_family(first: IRModule, second: IRModule, budgets: list[str], threads: int) -> list[Tuned]:
    """The second model with the least budget, alone and after the first one; and with the longest."""
    least, longest = budgets[0], budgets[-1]
    tune = partial(ia.tune, threads=threads)
    with new_database() as shared:
        tune(first, budget=longest, database=shared)
        after = Tuned(f"{least} after a relative", tune(second, budget=least, database=shared))
    return [*by_budget(second, [least], threads), after, *by_budget(second, [longest], threads)]


def rows(name: str, module: IRModule, tuned: list[Tuned], seconds: float) -> Iterator[dict[str, Any]]:
    """The winners beside each other; the last one is the final one."""
    inputs = random_inputs(module["main"])
    arrays = [inputs[info.name] for info in tuned[-1].result.executable.inputs]
    calls = {each.how: partial(each.result.executable.run_flat, *arrays) for each in tuned}
    compared = time_interleaved(calls, TimingPolicy(max_seconds=seconds / len(calls)))
    for each in tuned:
        ratio = compared.ratio(tuned[-1].how, each.how)
        yield {
            "model": name,
            "budget": each.how,
            "seconds": each.result.seconds,
            "candidates": len(each.result.candidates),
            "winner": each.result.chosen.name,
            "of_final": [ratio.ratio, ratio.low, ratio.high],
        }
        each.result.executable.close()


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
    found: list[dict[str, Any]] = []
    if not options.json:
        print(separator.join(HEADER), flush=True)
        if options.markdown:
            print("|".join("---" for _ in HEADER))
    for given in options.names or (FAMILIES if options.family else MODELS):
        name, module = given, from_onnx(build_model(given))
        if options.family:
            first, (name, build) = module, FAMILIES[given]
            module = from_onnx(build())
            tuned = of_family(first, module, budgets, options.threads)
        else:
            tuned = by_budget(module, budgets, options.threads)
        for row in rows(name, module, tuned, options.seconds):
            found.append(row)
            if not options.json:
                print(separator.join(line(row)), flush=True)
    if options.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
