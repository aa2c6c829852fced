"""The wheel intarsia-runtime beside the whole package: size, dependencies, import and first result.

Both are environments with a package installed (`pip install dist/intarsia_runtime-*.whl`, `pip install .`).
Each figure is the median of fresh processes of both, interleaved; NumPy is imported before the clock starts.

Usage: python -m benchmarks.runtime_wheel RUNTIME_PYTHON [--full PYTHON] [--model NAME] [--processes N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.measure.inputs import random_inputs

CODE = """
import json, sys, time
import numpy as np
inputs = [np.load(name) for name in sys.argv[2:]]
begin = time.perf_counter()
import intarsia as ia
imported = time.perf_counter()
exe = ia.load(sys.argv[1])
loaded = time.perf_counter()
exe(*inputs)
print(json.dumps([imported - begin, loaded - imported, time.perf_counter() - begin]))
"""

SIZE = """
import importlib.metadata as metadata, json, sys
files = metadata.files(sys.argv[1]) or []
sizes = [file.locate().stat().st_size for file in files if file.suffix == ".py"]
names = sorted(item.name for item in metadata.distributions() if item.name not in {"pip", "setuptools"})
print(json.dumps([sum(sizes), len(sizes), names]))
"""


def run(python: str, code: str, *arguments: str) -> list[object]:
    done = subprocess.run([python, "-c", code, *arguments], check=True, capture_output=True, text=True)
    values: list[object] = json.loads(done.stdout.splitlines()[-1])
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runtime", help="interpreter of an environment with intarsia-runtime")
    parser.add_argument("--full", default=sys.executable, help="interpreter with the whole package")
    parser.add_argument("--model", default="mnist")
    parser.add_argument("--processes", type=int, default=15)
    options = parser.parse_args()
    size, count, names = run(options.runtime, SIZE, "intarsia-runtime")
    print(f"intarsia-runtime: {int(str(size)) / 1e6:.2f} MB in {count} files; installed: {names}")
    pythons = {"intarsia-runtime": options.runtime, "intarsia": options.full}
    module = ia.from_onnx(build_model(options.model))
    with tempfile.TemporaryDirectory() as folder:
        artifact = str(Path(folder) / "model.intarsia")
        ia.build(module, "cpu -toolchain=native -threads=1").save(artifact)
        inputs = random_inputs(module["main"], 0)
        files = [str(Path(folder) / f"{name}.npy") for name in inputs]
        for file, array in zip(files, inputs.values(), strict=True):
            np.save(file, array)
        seconds: dict[str, list[list[float]]] = {name: [] for name in pythons}
        for _ in range(options.processes):
            for name, python in pythons.items():
                values = run(python, CODE, artifact, *files)
                seconds[name].append([float(str(value)) for value in values])
    print("| package | import, ms | load, ms | import to first result, ms |\n|---|---:|---:|---:|")
    for name, rows in seconds.items():
        medians = (1e3 * statistics.median(column) for column in zip(*rows, strict=True))
        print(f"| {name} | {' | '.join(f'{value:.1f}' for value in medians)} |")


if __name__ == "__main__":
    main()
