"""Tuned artifacts against the engines as a user runs them: each loads a file in a process of its own.

A model is tuned for BUDGET and saved. Then processes that have loaded the artifact, and others with a session
of onnxruntime or OpenVINO for the model's file, run interleaved. Each contender has several processes,
because the placement of its memory changes its speed. In a round each process runs for the same time; the
ratio of a round is that of the means of the contenders' medians. Ratios are medians over rounds, with 95 %
intervals from order statistics; above 1 the artifact is faster. With --record an interrupted run resumes.

Usage: python -m benchmarks.tuned_artifacts [NAME ...] [--budget 60s] [--threads N [N ...]] [--rounds N]
       [--share SECONDS] [--copies N] [--record FILE.jsonl] [--json] [--markdown]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from math import floor, sqrt
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from benchmarks.records import Records

import intarsia as ia
from intarsia.frontend.zoo import build_model, zoo
from intarsia.measure.inputs import random_inputs
from intarsia.support.errors import IntarsiaError
from intarsia.target.cpu import usable_cores

ENGINES: Final = ("onnxruntime", "openvino")
HEADER: Final = (
    *("model", "threads", "chosen", "tuned in, s", "artifact, ms"),
    *(f"{name} / artifact (95 %)" for name in ENGINES),
    "best engine / artifact",
)
_BEGIN: Final = """
import sys, time
import numpy as np
given, threads = dict(np.load(sys.argv[2])), int(sys.argv[3])
"""
_END: Final = """
run()
print("ready", flush=True)
for line in sys.stdin:
    end, times = time.perf_counter() + float(line), []
    while not times or time.perf_counter() < end:
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    print(float(np.median(times)), flush=True)
"""
_LOADERS: Final = {
    "artifact": """
import intarsia.runtime.artifact_load as loader
program = loader.load(sys.argv[1])
arrays = [given[info.name] for info in program.inputs]
run = lambda: program.run_flat(*arrays)
""",
    "onnxruntime": """
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
run = lambda: session.run(None, given)
""",
    "openvino": """
import openvino
hints = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
program = openvino.Core().compile_model(sys.argv[1], "CPU", hints)
request = program.create_infer_request()
run = lambda: request.infer(given, share_inputs=True, share_outputs=True)
""",
}
"""Scripts of the contenders. Arguments: the file, a file of inputs, the number of threads."""


class Contender:
    """A process that has loaded a file and runs it on request."""

    def __init__(self, kind: str, file: Path, inputs: Path, threads: int) -> None:
        script = _BEGIN + _LOADERS[kind] + _END
        command = [sys.executable, "-c", script, str(file), str(inputs), str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        self._read_line()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def time_runs(self, share: float) -> float:
        """Run for `share` seconds, and return the median time of a run."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{share}\n")
        self._process.stdin.flush()
        return float(self._read_line())

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            _, errors = self._process.communicate()
            raise IntarsiaError(errors.strip().rpartition("\n")[2] or "the process ended")
        return line


def measure(name: str, threads: int, options: argparse.Namespace) -> dict[str, Any]:
    """Tune a model, time it against the engines, and return the record."""
    with tempfile.TemporaryDirectory() as folder:
        model, artifact, inputs = (Path(folder) / file for file in ("m.onnx", "m.intarsia", "inputs.npz"))
        content = build_model(name)
        model.write_bytes(content.SerializeToString())
        given: dict[str, Any] = dict(random_inputs(ia.from_onnx(content)["main"]))
        np.savez(inputs, **given)
        begun = time.perf_counter()
        result = ia.tune(content, budget=options.budget, threads=threads)
        tuned_in = time.perf_counter() - begun
        result.save(artifact)
        chosen = next(record.name for record in result.candidates if record.chosen)
        result.executable.close()
        del result, content
        files = {kind: artifact if kind == "artifact" else model for kind in _LOADERS}
        with ExitStack() as stack:
            contenders = [
                (kind, stack.enter_context(Contender(kind, file, inputs, threads)))
                for _ in range(options.copies)
                for kind, file in files.items()
            ]
            rounds = [_run_round(contenders, options.share) for _ in range(options.rounds)]
    ratios = {
        kind: _interval([medians[kind] / medians["artifact"] for medians in rounds]) for kind in ENGINES
    }
    return {
        "chosen": chosen,
        "tuned_in": tuned_in,
        "seconds": {kind: statistics.median(medians[kind] for medians in rounds) for kind in _LOADERS},
        "ratios": ratios,
        "best_engine": min(ratio[0] for ratio in ratios.values()),
    }


def _run_round(contenders: Sequence[tuple[str, Contender]], share: float) -> dict[str, float]:
    """Run each process once, and return the mean of the medians of its processes for each contender."""
    medians: dict[str, list[float]] = {}
    for kind, contender in contenders:
        medians.setdefault(kind, []).append(contender.time_runs(share))
    return {kind: statistics.mean(times) for kind, times in medians.items()}


def _interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the median with its 95 % interval from order statistics."""
    ordered, count = sorted(ratios), len(ratios)
    # The rank of the median is binomial(count, 1/2), of deviation sqrt(count) / 2: 1.96 / 2 = 0.98.
    rank = max(0, floor(count / 2 - 0.98 * sqrt(count)))
    return statistics.median(ordered), ordered[rank], ordered[count - 1 - rank]


def cells(name: str, threads: int, record: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row of the table."""
    if "error" in record:
        return name, str(threads), record["error"]
    ratios = (f"{ratio:.3f} ({low:.3f} to {high:.3f})" for ratio, low, high in record["ratios"].values())
    artifact = f"{record['seconds']['artifact'] * 1e3:.3f}"
    begin = (name, str(threads), record["chosen"], f"{record['tuned_in']:.0f}", artifact)
    return *begin, *ratios, f"{record['best_engine']:.3f}"


def summary(results: Sequence[tuple[str, int, dict[str, Any]]]) -> list[str]:
    """Return the geometric mean and the minimum of the best engine's ratio for each number of threads."""
    lines = []
    for count in sorted({threads for _, threads, _ in results}):
        ratios = {
            name: record["best_engine"]
            for name, threads, record in results
            if threads == count and "error" not in record
        }
        if ratios:
            mean, least = statistics.geometric_mean(ratios.values()), min(ratios, key=ratios.__getitem__)
            head = f"{count} threads, {len(ratios)} models"
            lines.append(f"{head}: geometric mean {mean:.3f}, least {ratios[least]:.3f} ({least})")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=[model.name for model in zoo()])
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--threads", type=int, nargs="+", default=[usable_cores(Path("/"))])
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--share", type=float, default=0.15)
    parser.add_argument("--copies", type=int, default=2)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    records, separator = Records(options.record), " | " if options.markdown else "  "
    results: list[tuple[str, int, dict[str, Any]]] = []
    if not options.json:
        print(separator.join(HEADER), flush=True)
        if options.markdown:
            print("|".join("---" for _ in HEADER))
    settings = {key: getattr(options, key) for key in ("budget", "rounds", "share", "copies")}
    for name in options.names:
        for threads in options.threads:
            try:
                record = records.load_or_measure(
                    {"model": name, "threads": threads, **settings},
                    partial(measure, name, threads, options),
                )
            except IntarsiaError as error:
                record = {"error": str(error)}
            results.append((name, threads, record))
            if not options.json:
                print(separator.join(cells(name, threads, record)), flush=True)
    if options.json:
        print(json.dumps([{"model": n, "threads": t, **record} for n, t, record in results], indent=2))
    else:
        print("\n".join(summary(results)))


if __name__ == "__main__":
    main()
