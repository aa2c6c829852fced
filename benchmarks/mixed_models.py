"""What `tune` gains on models that no toolchain runs best, or at all, in all parts (`mixed_cases`).

For each model `tune` runs with a new database, and its winner then races each single toolchain that runs the
model: each program is loaded by a worker process of its own, the programs run interleaved, and their results
are verified. The race is another one than that of `tune`. A ratio is that of a toolchain's time to the
winner's, the median over the rounds that both have run, with its 95 % interval: above 1 the winner is faster.

`two_networks` is placed on two devices with half of the cores each by `TuneDevicePlacement`, and races the
toolchains with all cores.

Usage: python -m benchmarks.mixed_models [NAME ...] [--budget 40s] [--race 30s] [--seed N] [--threads N]
       [--results FILE] [--json] [--markdown]

Results are kept in FILE, one line of JSON for each model; models in it are not run again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.mixed_cases import CASES, MixedCase
from benchmarks.native_kernels import format_table

import intarsia as ia
from intarsia.collage.tune_device_placement import TuneDevicePlacement
from intarsia.driver.budget import parse_budget
from intarsia.driver.result import TuneResult
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import IRModule
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.database import Database
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.policy import RacePolicy
from intarsia.measure.runner import Raced
from intarsia.measure.testbed import LocalTestbed, TestbedLimits
from intarsia.runtime.devices.core_groups import allowed_cores
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.toolchain.this_host import this_host

TOOLCHAINS: Final = ("native", "onnxruntime", "openvino")
WINNER: Final = "tune"
HEADER: Final = ("model", "winner", "winner, ms", *(f"{name} / winner (95 %)" for name in TOOLCHAINS))
POLICY: Final = RacePolicy(margin=0.005, min_rounds=20, max_rounds=400)
"""Policy of the race: that of `tune` itself."""


def tune_case(module: IRModule, case: MixedCase, options: argparse.Namespace) -> TuneResult:
    """Tune a model as users do, or place it on two devices; with a new database in any case."""
    passes = [device_placement()] if case.is_for_devices else None
    with TemporaryDirectory() as folder, Database.open(Path(folder) / "measurements.db") as database:
        return ia.tune(
            module,
            budget=options.budget,
            targets=[target_of(name, options) for name in TOOLCHAINS],
            passes=passes,
            partitions=not case.is_for_devices,
            seed=options.seed,
            database=database,
        )


def target_of(toolchain: str, options: argparse.Namespace) -> Target:
    """Return the target of a toolchain alone."""
    return Target.for_toolchain(toolchain).with_options(threads=options.threads)


def device_placement() -> TuneDevicePlacement:
    """Return the pass that divides the cores between two devices."""
    half = max(1, len(allowed_cores()) // 2)
    target = f"cpu -toolchain=native -threads={half}"
    return TuneDevicePlacement(
        devices=tuple(f'VirtualDevice(cpu:{number}, target="{target}")' for number in range(2))
    )


def race_winner(module: IRModule, result: TuneResult, options: argparse.Namespace) -> Raced:
    """Race the winner against each toolchain alone, in worker processes."""
    seconds, plan = parse_budget(options.race), result.plan
    workload = Workload(module, result.model)
    racers = {WINNER: MeasureInput(workload, plan.whole or REFERENCE_TARGET, plan.candidate)}
    for name in TOOLCHAINS:
        racers[name] = MeasureInput(workload, target_of(name, options), WHOLE)
    limits = TestbedLimits.of_budget(seconds)
    with LocalTestbed.open(this_host(), limits=limits, seed=options.seed) as testbed:
        return testbed.race(racers, RaceLimits(POLICY, seconds))


def compare_case(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Tune a model, race its winner, and return the record."""
    case = CASES[name]
    module = from_onnx(case.build(options.seed))
    result = tune_case(module, case, options)
    raced = race_winner(module, result, options)
    if raced.result is None or WINNER in raced.failures:
        raise SystemExit(f"{name}: the winner did not finish the race: {raced.failures.get(WINNER)}")
    race = raced.result
    rivals = [racer.name for racer in race.candidates if racer.samples and racer.name != WINNER]
    ratios = {rival: race.ratio(rival, WINNER) for rival in rivals}
    winner = race.candidate(WINNER)
    return {
        "model": name,
        "reason": case.reason,
        "winner": result.chosen.name,
        "is_mixed": not result.chosen.is_whole,
        "seconds": winner.median,
        "spread": [winner.low, winner.high],
        "rounds": race.rounds,
        "ratios": {rival: [ratio.ratio, ratio.low, ratio.high] for rival, ratio in ratios.items()},
        "refused": {rival: failure.message for rival, failure in raced.failures.items()},
        "candidates": [[record.name, str(record.status), record.reason] for record in result.candidates],
        "notes": list(result.explanation.notes),
    }


def row(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the row of a model in the table."""
    ratios = (
        "{:.2f} ({:.2f} to {:.2f})".format(*record["ratios"][name]) if name in record["ratios"] else "refused"
        for name in TOOLCHAINS
    )
    return record["model"], record["winner"], f"{record['seconds'] * 1e3:.2f}", *ratios


def known_records(path: Path | None) -> dict[str, dict[str, Any]]:
    """Return the records of earlier runs by model."""
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    return {record["model"]: record for record in map(json.loads, lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--budget", default="40s")
    parser.add_argument("--race", default="30s")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="threads of each toolchain; default: all cores")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    records = known_records(options.results)
    for name in options.names:
        if name not in records:
            records[name] = compare_case(name, options)
            if options.results is not None:
                with options.results.open("a") as file:
                    file.write(json.dumps(records[name]) + "\n")
    chosen = [records[name] for name in options.names]
    if options.json:
        print(json.dumps(chosen, indent=2))
        return
    print(format_table(HEADER, [row(record) for record in chosen], options.markdown))


if __name__ == "__main__":
    main()
