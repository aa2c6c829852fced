"""PyTorch models by torch.compile(backend="intarsia"), beside eager mode, inductor and onnxruntime.

Each contender runs in a fresh process that builds the model from the same seed. It reports the time to its
first result (torch and the model are loaded before), and then is called in rounds, interleaved with others.
A ratio is the time of eager mode over that of a contender, the median of the rounds: 2 is twice as fast. The
error is the largest difference from eager mode's result, relative to its largest value.

It needs PyTorch and three libraries of models, which `make torch` installs:

Usage: PYTHONPATH=.torch python -m benchmarks.torch_models [--models NAME ...] [--contenders NAME ...]
       [--threads N] [--rounds N] [--seconds S] [--budget TIME] [--record FILE] [--json FILE] [--list]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
from benchmarks.records import Records
from benchmarks.torch_zoo import MODELS, TorchCase, build_case

USER_CODE: Final = {
    "eager": "",
    "inductor": "fast = torch.compile(model)",
    "onnxruntime": """
        torch.onnx.export(model, inputs, dynamo=True).save("model.onnx")
        session = onnxruntime.InferenceSession("model.onnx")
        names = [item.name for item in session.get_inputs()]
        results = session.run(None, dict(zip(names, [x.numpy() for x in inputs])))
    """,
    "intarsia": 'fast = torch.compile(model, backend="intarsia")',
}
"""Code that a user writes for each contender, beyond eager mode's; the table shows how many lines it has."""

HEADER: Final = ("model", "contender", "lines", "first result, s", "ms", "eager / it (range)", "error")


def start_contender(name: str, case: TorchCase, threads: int, budget: str | None) -> Callable[[], Any]:
    """Return the call of a contender."""
    import torch

    model, inputs = case.model, case.inputs
    torch.set_num_threads(threads)
    if name == "onnxruntime":
        return _onnxruntime_call(case, threads)
    if name == "inductor":
        model = torch.compile(model)
    if name == "intarsia":
        options = {"threads": threads, "strict": True, "budget": budget, "database": budget is not None}
        model = torch.compile(model, backend="intarsia", options=options)

    def call() -> Any:
        with torch.no_grad():
            return model(*inputs)

    return call


def _onnxruntime_call(case: TorchCase, threads: int) -> Callable[[], Any]:
    import onnxruntime
    import torch

    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = Path(folder) / "model.onnx"
        torch.onnx.export(case.model, case.inputs, dynamo=True, verbose=False).save(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    feed = dict(zip(names, (x.numpy() for x in case.inputs), strict=True))
    return lambda: session.run(None, feed)


def serve(name: str, model: str, results: Path, threads: int, budget: str | None) -> None:
    """Run a contender in this process: report its first result, then time as many calls as each line says."""
    case = build_case(model)
    began = time.perf_counter()
    call = start_contender(name, case, threads, budget)
    first = call()
    seconds = time.perf_counter() - began
    first = first if isinstance(first, (tuple, list)) else (first,)
    np.savez(results, *(np.asarray(item) for item in first))
    call()
    print(json.dumps({"first": seconds}), flush=True)
    for line in sys.stdin:
        count = int(line)
        begun = time.perf_counter()
        for _ in range(count):
            call()
        print((time.perf_counter() - begun) / count, flush=True)


class Contender:
    """A process that runs a model in one way."""

    def __init__(self, name: str, model: str, folder: Path, options: argparse.Namespace) -> None:
        self.name = name
        self._results = folder / f"{name}.npz"
        command = [sys.executable, "-m", "benchmarks.torch_models", "--serve", name, model]
        command += [str(self._results), "--threads", str(options.threads)]
        command += ["--budget", options.budget] if options.budget else []
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self._read()
        while not line.startswith('{"first"'):  # libraries print as well
            line = self._read()
        self.first_seconds = float(json.loads(line)["first"])
        self.count = 1

    def time_calls(self) -> float:
        """Return the seconds of a call, on average over `count` calls."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{self.count}\n")
        self._process.stdin.flush()
        return float(self._read())

    def results(self) -> list[Any]:
        """Return the arrays of its first result."""
        with np.load(self._results) as arrays:
            return [arrays[name] for name in arrays.files]

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with exit code {self._process.wait()}")
        return line


def measure_model(model: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the record of a model: each contender's first result, latency, ratio and error."""
    failures: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        contenders = []
        for name in options.contenders:
            try:
                contenders.append(Contender(name, model, Path(folder), options))
            except RuntimeError as error:
                failures[name] = str(error)
                continue
            stack.callback(contenders[-1].close)
        for contender in contenders:
            contender.count = max(1, round(options.seconds / contender.time_calls()))
        seconds: dict[str, list[float]] = {contender.name: [] for contender in contenders}
        for turn in range(options.rounds):
            for offset in range(len(contenders)):
                contender = contenders[(turn + offset) % len(contenders)]
                seconds[contender.name].append(contender.time_calls())
        expected = next((item.results() for item in contenders if item.name == "eager"), None)
        return {
            "model": model,
            "failures": failures,
            "contenders": [
                {
                    "name": item.name,
                    "first_seconds": item.first_seconds,
                    "seconds": statistics.median(seconds[item.name]),
                    "ratios": _ratios(seconds, item.name),
                    "error": None if expected is None else _largest_error(item.results(), expected),
                }
                for item in contenders
            ],
        }


def _ratios(seconds: dict[str, list[float]], name: str) -> list[float]:
    return [eager / own for eager, own in zip(seconds.get("eager", []), seconds[name], strict=False)]


def _largest_error(actual: Sequence[Any], expected: Sequence[Any]) -> float:
    return max(
        float(np.abs(left - right).max() / max(np.abs(right).max(), 1e-30))
        for left, right in zip(actual, expected, strict=True)
    )


def rows(record: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of a model in the table."""
    measured = [
        (
            record["model"],
            item["name"],
            str(len(USER_CODE[item["name"]].strip().splitlines())),
            f"{item['first_seconds']:.1f}",
            f"{1e3 * item['seconds']:.2f}",
            _range_text(item["ratios"]),
            "-" if item["error"] is None else f"{item['error']:.1e}",
        )
        for item in record["contenders"]
    ]
    failed: list[tuple[str, ...]] = [
        (record["model"], name, "", reason, "", "", "") for name, reason in record["failures"].items()
    ]
    return [*measured, *failed]


def _range_text(ratios: Sequence[float]) -> str:
    if not ratios:
        return "-"
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="NAME")
    parser.add_argument("--contenders", nargs="+", choices=USER_CODE, default=list(USER_CODE))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="seconds of a contender in a round (0.5)")
    parser.add_argument("--budget", help="tune with this budget, and with the user's database")
    parser.add_argument("--record", type=Path, help="file of measured models: an interrupted run resumes")
    parser.add_argument("--json", type=Path, help="file for all records")
    parser.add_argument("--list", action="store_true", help="list the models and measure none")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        name, model, results = options.serve
        serve(name, model, Path(results), options.threads, options.budget)
        return
    if options.list:
        print("\n".join(MODELS))
        return
    records, measured = Records(options.record), []
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}")
    for model in options.models:
        names = ("contenders", "threads", "rounds", "seconds", "budget")
        key = {"model": model, **{name: getattr(options, name) for name in names}}
        measured.append(records.load_or_measure(key, lambda model=model: measure_model(model, options)))  # type: ignore[misc]  # mypy cannot infer lambdas with defaults
        print("\n".join(f"| {' | '.join(row)} |" for row in rows(measured[-1])), flush=True)
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
