"""Layers drawn from what papers and libraries use: native beside the engines, in interleaved fresh processes.

A seed draws the layers and blocks. Each is run by five processes that were forked for it: native, and both
engines with their default and one more setting. They compile it at the same time and then take turns: one is
timed while the others are stopped. The faster setting of each engine counts. The ratio is the faster
engine's median over native's: above 1, native is ahead. The roofline counts directly computed operations, so
Winograd's algorithm may exceed it. With `--cpu` native and OpenVINO use the instructions of another CPU;
ONNX Runtime cannot be limited.

Usage: python -m benchmarks.sweep [--seed N | --seeds N [N ...]] [--layers N] [--blocks N] [--threads N]
       [--cpu NAME] [--element float16]
       [--families NAME [NAME ...]] [--case TEXT] [--record FILE] [--json FILE] [--list]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.records import Records
from benchmarks.sweep.case import Case
from benchmarks.sweep.contest import CONTENDERS, TOLERANCE, Contender, Turns, measure_layer, measure_roofline
from benchmarks.sweep.families import FAMILIES, draw_layers
from benchmarks.sweep.summary import cause_of, describe, summarise_group


def measure_cases(cases: Sequence[Case], turns: Turns, record: Path | None) -> list[dict[str, Any]]:
    """Return the records of some layers; those in the file of an earlier run are not measured again."""
    records, results, began = Records(record), [], time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sweep-", dir=_memory_folder())))
        roofline = measure_roofline(turns.threads)
        contenders = [stack.enter_context(Contender(*names, turns.cpu)) for names in CONTENDERS]
        for number, case in enumerate(cases, 1):
            results.append(
                records.load_or_measure(
                    {"case": case.text, **asdict(turns)},
                    lambda case=case: measure_layer(case, contenders, turns, roofline, folder),  # type: ignore[misc]  # mypy cannot infer lambdas with defaults
                )
            )
            _show_progress(number, len(cases), time.monotonic() - began, results[-1])
    return results


def _memory_folder() -> str | None:
    """Return a folder in memory: large models are written and read four times."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _show_progress(number: int, count: int, seconds: float, record: dict[str, Any]) -> None:
    outcome = "no ratio" if record["ratio"] is None else f"{record['ratio']:.2f}"
    left = seconds / number * (count - number) / 60
    print(f"{number}/{count} {outcome} {record['case']} ({left:.0f} min left)", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", "--seeds", dest="seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--layers", type=int, default=600, help="layers of each seed (600)")
    parser.add_argument("--blocks", type=int, default=40, help="whole blocks of networks, of each seed (40)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=0.02, help="seconds of each turn (0.02)")
    parser.add_argument(
        "--cpu", default="", choices=("haswell", "znver3"), help="limit native and oneDNN to its code"
    )
    parser.add_argument("--element", default="float32", choices=TOLERANCE, help="type of all floats")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, help="only drawn layers of these families")
    parser.add_argument("--case", action="append", help="measure this layer, as printed, and draw none")
    parser.add_argument("--record", type=Path, help="file of measured layers: an interrupted run resumes")
    parser.add_argument("--json", type=Path, help="file for all records")
    parser.add_argument("--list", action="store_true", help="list the layers and measure none")
    options = parser.parse_args()
    drawn = [case for seed in options.seeds for case in draw_layers(seed, options.layers, options.blocks)]
    cases = [Case.parse(text) for text in options.case] if options.case else drawn
    cases = [case for case in cases if case.family in (options.families or FAMILIES)]
    if options.list:
        print("\n".join(case.text for case in cases))
        return
    turns = Turns(options.rounds, options.seconds, options.threads, options.cpu, options.element)
    records = measure_cases(cases, turns, options.record)
    print(describe(records))
    if options.json:
        summary = asdict(summarise_group("all", records))
        document = {"summary": summary, "layers": [{**item, "cause": cause_of(item)} for item in records]}
        options.json.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
