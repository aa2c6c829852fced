"""Roads from a model to its program: deciding jointly, one decision after another, and by rules.

Each model is tuned on each road with the same budget, each time with a new database:

rules        each toolchain alone, with its own rules; nothing is decided but the toolchain
sequential   the passes of the default pipeline decide for the fastest toolchain, then the parts are placed
joint        the default of `tune`: the passes decide for each toolchain that may win, and for parts

The winners, native by rule, and each engine alone are then measured interleaved in one process. A ratio is a
contender's median time over that of the joint winner, with a 95 % interval: above 1 deciding jointly is
faster. There is no ratio if both are the same program. The last line counts the models on which the joint
winner gains at least 3 %, and those on which it is slower, beyond the interval.

A name is one of the zoo, or corpus:NAME of a model that `make corpus` has built, with its own inputs.

Usage: python -m benchmarks.tuned_programs [NAME or FILE.onnx ...] [--seeds N [N ...]] [--budget 20s]
       [--roads R [R ...]] [--threads N] [--race 8s] [--record FILE.jsonl] [--json] [--markdown]

With --record an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from benchmarks.native_kernels import format_table
from benchmarks.records import Records
from corpus.model_cache import entry_of
from corpus.recipe import recipes

import intarsia as ia
from intarsia.build import build
from intarsia.collage.tune_placement import TunePlacement
from intarsia.driver.budget import parse_budget
from intarsia.driver.result import TuneResult
from intarsia.driver.shape_samples import sized_program
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import IRModule
from intarsia.measure.database import Database
from intarsia.measure.inputs import random_inputs
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.callbacks import silent
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.transform import Pass, load_pass_sequence

ROADS: Final = ("rules", "sequential", "joint")
JOINT: Final = "joint"
CORPUS: Final = "corpus:"
TOOLCHAINS: Final = ("native", "onnxruntime", "openvino")
GAIN: Final = 1.03
"""Ratio from which a model counts as one that gains."""
HEADER: Final = (
    "model",
    "seed",
    "contender",
    "program",
    "median, ms",
    "/ joint (95 %)",
    "decided",
    "took, s",
)


def passes_of(road: str, targets: Sequence[Target]) -> list[Pass] | None:
    """Return the passes of a road; None for those of the default pipeline."""
    if road == "rules":
        return []
    if road == JOINT:
        return None
    placement = TunePlacement(targets=tuple(str(target) for target in targets), evolves=True)
    return [*load_pass_sequence("default_tuning").passes, placement]


def load_model(name: str) -> tuple[IRModule, dict[str, Any] | None]:
    """Return the program of a name or file, and its inputs if it has some of its own.

    Inputs give symbolic dimensions their sizes, as they do in `tune`.
    """
    if not name.startswith(CORPUS):
        return from_onnx(name if name.endswith(".onnx") else build_model(name)), None
    entry = entry_of(recipes()[name.removeprefix(CORPUS)], None)
    with np.load(entry.inputs, allow_pickle=True) as arrays:
        inputs = dict(arrays)
    shapes = {key: array.shape for key, array in inputs.items()}
    return sized_program(from_onnx(entry.model), {}, shapes, silent).module, inputs


def tune_model(
    module: IRModule,
    inputs: Mapping[str, Any] | None,
    road: str,
    targets: Sequence[Target],
    seed: int,
    budget: str,
) -> tuple[TuneResult, float]:
    """Tune a model on a road with a new database, and return the result and the wall seconds."""
    begun = time.perf_counter()
    with TemporaryDirectory() as folder, Database.open(Path(folder) / "measurements.db") as database:
        result = ia.tune(
            module,
            budget=budget,
            targets=targets,
            inputs=inputs,
            database=database,
            passes=passes_of(road, targets),
            partitions=road != "rules",
            seed=seed,
        )
    return result, time.perf_counter() - begun


def build_alone(
    module: IRModule, targets: Mapping[str, Target], tuned: TuneResult, stack: ExitStack
) -> dict[str, Executable]:
    """Build the model on each toolchain that has run it: others refuse it, or crash with their process."""
    works = {record.target for record in tuned.candidates if record.is_whole and record.timing is not None}
    programs = {}
    for key, target in targets.items():
        if str(target) in works:
            programs[key] = stack.enter_context(build(partition_whole(module, target)))
    return programs


def measure_model(
    name: str, seed: int, roads: Sequence[str], budget: str, threads: int, race: float
) -> dict[str, Any]:
    """Tune a model on each road, measure the winners interleaved, and return a row for each contender."""
    module, given = load_model(name)
    targets = [Target.for_toolchain(toolchain, threads=threads) for toolchain in TOOLCHAINS]
    tuned = {road: tune_model(module, given, road, targets, seed, budget) for road in roads}
    joint = tuned[JOINT][0]
    with ExitStack() as stack:
        alone = {f"{target.toolchain} alone": target for target in targets}
        programs = {road: stack.enter_context(result.executable) for road, (result, _) in tuned.items()}
        inputs = given or random_inputs(module["main"])
        arrays = [inputs[info.name] for info in programs[JOINT].inputs]
        programs |= build_alone(module, alone, joint, stack)
        calls = {
            key: (lambda program=program: program.run_flat(*arrays)) for key, program in programs.items()
        }
        comparison = time_interleaved(calls, TimingPolicy(max_seconds=race / len(calls)))
    rows = {}
    for key in programs:
        ratio = comparison.ratio(key, JOINT)
        is_same = key == JOINT or (
            tuned[key][0].plan.is_same(joint.plan)
            if key in tuned
            else joint.plan.whole == alone[key] and not joint.plan.decisions
        )
        rows[key] = {
            "program": tuned[key][0].chosen.name if key in tuned else key,
            "median": comparison.timings[key].median,
            "ratio": None if is_same else [ratio.ratio, ratio.low, ratio.high],
            "decisions": list(tuned[key][0].explanation.decisions) if key in tuned else [],
            "seconds": tuned[key][1] if key in tuned else None,
        }
    return {"model": name, "seed": seed, "rows": rows}


def table_rows(record: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of the table of a model and a seed."""
    return [
        (
            Path(record["model"]).stem,
            str(record["seed"]),
            key,
            row["program"],
            f"{row['median'] * 1e3:.3f}",
            "the same" if row["ratio"] is None else "{:.3f} ({:.3f} to {:.3f})".format(*row["ratio"]),
            "; ".join(row["decisions"]) or "-",
            "-" if row["seconds"] is None else f"{row['seconds']:.0f}",
        )
        for key, row in record["rows"].items()
    ]


def summary(records: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each contender: the models that gain by deciding jointly, and those that lose."""
    lines = []
    for key in dict.fromkeys(key for record in records for key in record["rows"] if key != JOINT):
        by_model: dict[str, list[list[float]]] = {}
        for record in records:
            ratio = record["rows"].get(key, {"ratio": None})["ratio"] or [1.0, 1.0, 1.0]
            by_model.setdefault(Path(record["model"]).stem, []).append(ratio)
        middle = {
            name: [statistics.median(column) for column in zip(*ratios, strict=True)]
            for name, ratios in by_model.items()
        }
        gains = [name for name, (ratio, low, _) in middle.items() if ratio >= GAIN and low > 1]
        losses = [name for name, (ratio, _, high) in middle.items() if high < 1]
        mean = statistics.geometric_mean(ratio for ratio, _, _ in middle.values())
        lines.append(
            f"{key} / joint: {mean:.3f} on average over {len(middle)} models; {len(gains)} gain 3 % or more "
            f"({', '.join(gains) or 'none'}), {len(losses)} lose ({', '.join(losses) or 'none'})"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=[model.name for model in zoo()])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--roads", nargs="+", choices=ROADS, default=list(ROADS))
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--threads", type=int, default=usable_cores(Path("/")))
    parser.add_argument("--race", default="8s")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    roads = [road for road in ROADS if road in {*options.roads, JOINT}]
    kept, records = Records(options.record), []
    for name in options.names:
        for seed in options.seeds:
            settings = (name, seed, roads, options.budget, options.threads)
            asked = dict(zip(("name", "seed", "roads", "budget", "threads"), settings, strict=True))
            race = parse_budget(options.race)
            records.append(kept.load_or_measure(asked, lambda: measure_model(*settings, race)))  # noqa: B023
            if not options.json:
                print("\n".join(" | ".join(row) for row in table_rows(records[-1])), flush=True)
    if options.json:
        print(json.dumps(records))
        return
    rows = [row for record in records for row in table_rows(record)]
    print("", format_table(HEADER, rows, options.markdown), *summary(records), sep="\n")


if __name__ == "__main__":
    main()
