"""Compare artifacts loaded by a new process with the executables they were saved from, interleaved.

Nothing is tuned again, and native compiles nothing: the new process loads machine code. A ratio is the
time of a run in the new process to that in the old one; the range is that of the ratios of the rounds.

Usage: python -m benchmarks.fresh_artifacts [NAME ...] [--budget 20s] [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

import intarsia as ia
from intarsia.frontend.zoo import build_model, zoo
from intarsia.measure.inputs import random_inputs

_ROUND_SECONDS: Final = 0.2
"""Seconds that each process runs in a round."""

_CHILD: Final = """
import sys, time
import numpy as np
import intarsia.runtime.artifact_load as loader
began = time.perf_counter()
exe = loader.load(sys.argv[1])
given = dict(np.load(sys.argv[2]))
arrays = [given[info.name] for info in exe.inputs]
exe.run_flat(*arrays)
print(time.perf_counter() - began, any("llvmlite" in name for name in sys.modules), flush=True)
for line in sys.stdin:
    count = int(line)
    begun = time.perf_counter()
    for _ in range(count):
        exe.run_flat(*arrays)
    print((time.perf_counter() - begun) / count, flush=True)
"""


def compare_artifact(name: str, budget: str, rounds: int) -> dict[str, Any]:
    """Tune and save a model, load it in a new process, and return the record of the comparison."""
    with tempfile.TemporaryDirectory() as folder:
        artifact, inputs = Path(folder) / "model.intarsia", Path(folder) / "inputs.npz"
        result = ia.tune(build_model(name), budget=budget)
        result.save(artifact)
        given: dict[str, Any] = random_inputs(ia.from_onnx(build_model(name))["main"])
        np.savez(inputs, **given)
        exe = result.executable
        arrays = [given[info.name] for info in exe.inputs]
        command = [sys.executable, "-c", _CHILD, str(artifact), str(inputs)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            seconds, compiles = child.stdout.readline().split()
            count = max(1, round(_ROUND_SECONDS / _time_call(lambda: exe.run_flat(*arrays), 3)))
            ratios = []
            for turn in range(rounds):
                here = 0.0 if turn % 2 else _time_call(lambda: exe.run_flat(*arrays), count)
                child.stdin.write(f"{count}\n")
                child.stdin.flush()
                there = float(child.stdout.readline())
                here = here or _time_call(lambda: exe.run_flat(*arrays), count)
                ratios.append(there / here)
            child.stdin.close()
    return {
        "model": name,
        "chosen": next(record.name for record in result.candidates if record.chosen),
        "load_seconds": float(seconds),
        "loads_a_compiler": compiles == "True",
        "ratio": statistics.median(ratios),
        "range": [min(ratios), max(ratios)],
    }


def _time_call(run: Callable[[], object], count: int) -> float:
    begun = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - begun) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=[model.name for model in zoo()])
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    records = []
    for name in options.names:
        records.append(compare_artifact(name, options.budget, options.rounds))
        if not options.json:
            record = records[-1]
            low, high = record["range"]
            print(
                f"{name}: {record['chosen']}, loaded and run in {record['load_seconds']:.2f} s, "
                f"{'with' if record['loads_a_compiler'] else 'without'} a compiler; "
                f"new / old {record['ratio']:.3f} ({low:.3f} to {high:.3f})",
                flush=True,
            )
    if options.json:
        print(json.dumps(records, indent=2))


if __name__ == "__main__":
    main()
