"""Import: time of densenet121, peak memory for a model of 500 MB, and `import intarsia`.

    python -m benchmarks.importing [--json] [--megabytes 500]

Times are the best of several runs, so that other work on the machine disturbs them least. Peak memory is that
of a fresh process above its memory before the import, divided by the size of the file. Goals: densenet121
below 3 s, peak memory from a path at most 2.2 times the file, `import intarsia` below 0.5 s.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

SOURCES = ("path", "bytes", "message")

_CHILD = """
import sys
from pathlib import Path
import onnx
from intarsia.frontend.onnx import from_onnx

def kilobytes(field):
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(field)).split()[1])

source, path, warm = sys.argv[1:]
from_onnx(warm)
given = path if source == "path" else Path(path).read_bytes() if source == "bytes" else onnx.load(path)
Path("/proc/self/clear_refs").write_text("5")
before = kilobytes("VmRSS")
module = from_onnx(given)
print((kilobytes("VmHWM") - before) * 1024)
"""
"""Script of the fresh process.

The libraries are loaded before the baseline is taken. Writing 5 to clear_refs resets VmHWM (Linux only);
ru_maxrss would not do, because a process inherits it from its parent. Bytes and messages count for the
baseline, because the caller holds them.
"""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the report.

    Attributes:
        name: Description of the measured operation.
        value: Seconds, or a ratio.
        unit: "s" or "x".
        goal: Largest value that meets the goal; None if there is no goal.
    """

    name: str
    value: float
    unit: str
    goal: float | None

    def line(self) -> str:
        """Return the line of the report."""
        verdict = "" if self.goal is None else f"  (goal {self.goal:g} {self.unit}: {self.verdict()})"
        return f"{self.name:<48} {self.value:8.3f} {self.unit}{verdict}"

    def verdict(self) -> str:
        """Return "met" or "missed"."""
        return "missed" if self.goal is not None and self.value > self.goal else "met"


def measure_package_import(repeats: int = 5) -> Measurement:
    code = "import time; t = time.perf_counter(); import intarsia; print(time.perf_counter() - t)"
    return Measurement("import intarsia", min(_run_children(code, repeats)), "s", 0.5)


def measure_densenet_import(repeats: int = 3) -> Measurement:
    """Time the import of the light model in the onnx package, 1,746 nodes, with all libraries loaded."""
    from importlib.resources import files

    from intarsia.frontend.onnx import from_onnx

    light = files("onnx").joinpath("backend", "test", "data", "light")
    from_onnx(light.joinpath("light_squeezenet.onnx").read_bytes())
    data = light.joinpath("light_densenet121.onnx").read_bytes()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        from_onnx(data)
        times.append(time.perf_counter() - start)
    return Measurement("from_onnx(densenet121), 1,746 nodes", min(times), "s", 3.0)


def measure_peak_memory(folder: Path, megabytes: int) -> list[Measurement]:
    path, warm = folder / "large.onnx", folder / "warm.onnx"
    size = _write_large(path, megabytes)
    _write_large(warm, 1)
    measurements = []
    for source in SOURCES:
        (peak,) = _run_children(_CHILD, 1, source, str(path), str(warm))
        goal = 2.2 if source == "path" else None
        name = f"peak memory, {megabytes} MB from {source} / file"
        measurements.append(Measurement(name, peak / size, "x", goal))
    return measurements


def _write_large(path: Path, megabytes: int) -> int:
    """Write a chain of additions of 8 MB weights, and return the size of the file in bytes."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper

    side = 1 << 10
    count = max(1, megabytes * 10**6 // (2 * side * side * 4))
    row = np.ones((2 * side, side), np.float32).tobytes()
    shape = [2 * side, side]
    graph = helper.make_graph(
        [helper.make_node("Add", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(count)],
        "large",
        [helper.make_tensor_value_info("v0", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(f"v{count}", TensorProto.FLOAT, shape)],
    )
    for i in range(count):
        graph.initializer.add(name=f"w{i}", data_type=TensorProto.FLOAT, dims=shape, raw_data=row)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path.stat().st_size


def _run_children(code: str, repeats: int, *args: str) -> list[float]:
    command = [sys.executable, "-c", code, *args]
    return [
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(repeats)
    ]


def measure(megabytes: int) -> list[Measurement]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [measure_package_import(), measure_densenet_import(), *measure_peak_memory(folder, megabytes)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of importing models.")
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    parser.add_argument("--megabytes", type=int, default=500, help="size of the large model (default 500)")
    options = parser.parse_args()
    measurements = measure(options.megabytes)
    if options.json:
        print(
            json.dumps([{**asdict(item), "met": item.verdict() == "met"} for item in measurements], indent=2)
        )
    else:
        print("\n".join(item.line() for item in measurements))


if __name__ == "__main__":
    main()
