"""Load time and peak memory of models: a saved artifact against sessions of the engines.

Each is loaded and run once in a process of its own. This is repeated three times, interleaved, and the
medians are reported. Load time is from the file to the first result, without imports. Memory is the resident
set of Linux, pages of mapped files included: its peak (VmHWM), and what stays after the first result (VmRSS).
The last columns are both over those of the better engine, and the last line their geometric means and maxima.

Usage: python -m benchmarks.model_memory [NAME ...] [--threads N] [--repeats N] [--json] [--markdown]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.measure.inputs import random_inputs
from intarsia.passes import partition_whole
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target
from intarsia.target.cpu import usable_cores

_BEGIN: Final = """
import json, sys, time
import numpy as np
given = dict(np.load(sys.argv[2]))
threads = int(sys.argv[3])
def memory(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))
def report(began):
    seconds = time.perf_counter() - began
    print(json.dumps({"load": seconds, "peak": memory("VmHWM"), "kept": memory("VmRSS")}))
"""

LOADERS: Final = {
    "intarsia": """
import intarsia.runtime.artifact_load as loader
began = time.perf_counter()
exe = loader.load(sys.argv[1])
exe.run_flat(*(given[info.name] for info in exe.inputs))
report(began)
""",
    "onnxruntime": """
import onnxruntime
began = time.perf_counter()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
session.run(None, given)
report(began)
""",
    "openvino": """
import openvino
began = time.perf_counter()
compiled = openvino.Core().compile_model(
    sys.argv[1], "CPU", {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
)
compiled(given)
report(began)
""",
}
"""Scripts that load and run a file. Arguments: the file, a file of inputs, the number of threads."""

HEADER: Final = (
    "model",
    "file, MB",
    *(f"{name}, {what}" for name in LOADERS for what in ("s", "peak MB", "kept MB")),
    "peak ratio",
    "kept ratio",
)


def measure(name: str, threads: int, repeats: int) -> dict[str, Any]:
    """Measure a model with each loader, and return the medians."""
    with tempfile.TemporaryDirectory() as folder:
        model, artifact, inputs = (Path(folder) / file for file in ("m.onnx", "m.intarsia", "inputs.npz"))
        content = build_model(name)
        model.write_bytes(content.SerializeToString())
        module = from_onnx(content)
        given: dict[str, Any] = dict(random_inputs(module["main"]))
        np.savez(inputs, **given)
        with build(partition_whole(module, Target.for_toolchain("native", threads=threads))) as exe:
            exe.save(artifact)
        files = {loader: artifact if loader == "intarsia" else model for loader in LOADERS}
        reports: dict[str, list[dict[str, float]]] = {loader: [] for loader in LOADERS}
        for _ in range(repeats):
            for loader, script in LOADERS.items():
                args = str(files[loader]), str(inputs), str(threads)
                command = [sys.executable, "-c", _BEGIN + script, *args]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                reports[loader].append(json.loads(output))
        medians = {
            loader: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
            for loader, runs in reports.items()
        }
        return {"model": name, "bytes": artifact.stat().st_size, **medians}


def ratio(record: dict[str, Any], key: str) -> float:
    """Return the memory of an artifact over that of the better engine."""
    values: dict[str, float] = {name: record[name][key] for name in LOADERS}
    return values.pop("intarsia") / min(values.values())


def summary(records: list[dict[str, Any]], key: str) -> str:
    """Return the geometric mean and the maximum of the ratios."""
    ratios = [ratio(record, key) for record in records if "error" not in record]
    return f"{key} {statistics.geometric_mean(ratios):.2f}, at most {max(ratios):.2f}" if ratios else ""


def line(record: dict[str, Any]) -> tuple[str, ...]:
    cells = (
        text
        for loader in LOADERS
        for text in (
            f"{record[loader]['load']:.2f}",
            f"{record[loader]['peak'] / 1024:.0f}",
            f"{record[loader]['kept'] / 1024:.0f}",
        )
    )
    ratios = (f"{ratio(record, key):.2f}" for key in ("peak", "kept"))
    return (record["model"], f"{record['bytes'] / 1e6:.0f}", *cells, *ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=[model.name for model in zoo()])
    parser.add_argument("--threads", type=int, default=usable_cores(Path("/")))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    separator, records = " | " if options.markdown else "  ", []
    if not options.json:
        print(separator.join(HEADER))
        if options.markdown:
            print("|".join("---" for _ in HEADER))
    for name in options.names:
        try:
            records.append(measure(name, options.threads, options.repeats))
        except (IntarsiaError, subprocess.CalledProcessError) as error:
            records.append({"model": name, "error": str(error)})
        if not options.json:
            last = records[-1]
            print(f"{name}: {last['error']}" if "error" in last else separator.join(line(last)), flush=True)
    if options.json:
        print(json.dumps(records, indent=2))
    else:
        print("over the better engine:", *(summary(records, key) for key in ("peak", "kept")), sep="  ")


if __name__ == "__main__":
    main()
