"""Cost of native kernels before they run: compiling each, building a model, saving and loading it.

The first table has one row for each model: milliseconds from the loop state to a callable kernel, over the
distinct kernels of the model. The second is about one model; each row is the best of several new processes:
building with an empty kernel cache and with a full one (the program is imported, LLVM is not yet loaded),
loading the artifact, with and without Python's imports for that, and its size. Memory is the peak of the
process, mapped files included.

Usage: python -m benchmarks.native_build [NAME ...] [--whole resnet50] [--rounds 3] [--threads N]
       [--markdown]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import GlobalVar, IRModule
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.graph import plan_region
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import scheduled
from intarsia.native.tir import default_tir
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.native.simplified import simplified

MODELS = ("resnet50", "mobilenet_v2", "shufflenet", "inception_v1", "bert_tiny")
KERNELS_HEADER = ("model", "kernels", "median, ms", "95 %, ms", "most, ms", "all, s", "state, median ms")
WHOLE_HEADER = ("what", "seconds", "goal, s", "memory, MB")

BUILDING = """
import json, resource, sys, time
from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.passes import partition_whole
from intarsia.target import Target
module = from_onnx(build_model(sys.argv[1]))
began = time.perf_counter()
executable = build(partition_whole(module, Target.for_toolchain("native", threads=int(sys.argv[3]))))
seconds = time.perf_counter() - began
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
executable.save(sys.argv[2])
print(json.dumps({"seconds": seconds, "memory": memory}))
"""
LOADING = """
import time
began = time.perf_counter()
import json, resource, sys
from intarsia import load
imported = time.perf_counter()
load(sys.argv[2])
seconds = time.perf_counter() - imported
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"seconds": seconds, "whole": time.perf_counter() - began, "memory": memory}))
"""


def measure_kernels(name: str, rounds: int, threads: int) -> tuple[str, ...]:
    """Time the compilation of the distinct kernels of a model, best of the rounds, and return the row."""
    isa = Isa.host()
    plan = plan_region(simplified(from_onnx(build_model(name))["main"]), isa)
    dags = list(dict.fromkeys(kernel.dag for kernel in plan.kernels))
    time_compilation(dags[0], isa, threads)  # the first one loads LLVM
    timings = [min(time_compilation(dag, isa, threads) for _ in range(rounds)) for dag in dags]
    states = [state for _, state in timings]
    costs = sorted(cost for cost, _ in timings)
    high = costs[min(len(costs) - 1, int(0.95 * len(costs)))]
    times = (statistics.median(costs), high, costs[-1])
    columns = (f"{1e3 * value:.1f}" for value in times)
    return (name, str(len(dags)), *columns, f"{sum(costs):.2f}", f"{1e3 * statistics.median(states):.1f}")


def time_compilation(dag: ComputeDAG, isa: Isa, threads: int) -> tuple[float, float]:
    """Return the seconds from the loop state to the callable kernel, and those of choosing the state."""
    began = time.perf_counter()
    chosen = scheduled(dag, isa, threads)
    decided = time.perf_counter()
    loops = IRModule({GlobalVar("f"): chosen.lowered()})
    function = default_tir(isa.vector_bytes, isa.vector_registers)(loops).prim_func("f")
    compile_kernel(function, isa).load()
    return time.perf_counter() - decided, decided - began


def measure_model(name: str, rounds: int, threads: int) -> list[tuple[str, ...]]:
    """Build, save and load a model in new processes, and return the rows of the second table."""
    with tempfile.TemporaryDirectory() as folder_name:
        folder, artifact = Path(folder_name), Path(folder_name) / "model.intarsia"
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")  # bytecode exists after the first use

        def best(program: str, *caches: str, key: str = "seconds") -> dict[str, Any]:
            runs = []
            for cache in caches:
                command = [sys.executable, "-c", program, name, str(artifact), str(threads)]
                variables = {**environment, "XDG_CACHE_HOME": str(folder / cache)}
                runs.append(json.loads(subprocess.check_output(command, env=variables, text=True)))
            return min(runs, key=lambda run: run[key])

        best(BUILDING, "first")
        cold = best(BUILDING, *(f"cold{number}" for number in range(rounds)))
        warm = best(BUILDING, *["first"] * rounds)
        best(LOADING, "first")
        loads = best(LOADING, *["first"] * 2 * rounds)
        whole = best(LOADING, *["first"] * 2 * rounds, key="whole")
        size = artifact.stat().st_size
    weights = sum(
        tensor.ByteSize() for tensor in build_model(name).graph.initializer
    )  # the artifact contains them as in the model
    return [
        ("build, no kernel in the cache", f"{cold['seconds']:.2f}", "20", f"{cold['memory'] / 1e6:.0f}"),
        ("build, all kernels in the cache", f"{warm['seconds']:.2f}", "3", f"{warm['memory'] / 1e6:.0f}"),
        ("load", f"{loads['seconds']:.3f}", "0.5", f"{loads['memory'] / 1e6:.0f}"),
        ("import and load", f"{whole['whole']:.3f}", "", f"{whole['memory'] / 1e6:.0f}"),
        (f"artifact: {size / 1e6:.0f} MB, weights of the program: {weights / 1e6:.0f} MB", "", "", ""),
    ]


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> str:
    """Return a table as text, one row a line."""
    if markdown:
        lines = [header, ["---"] * len(header), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in (header, *rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--whole", default="resnet50")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=usable_cores(Path("/")))
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    rows = [measure_kernels(name, options.rounds, options.threads) for name in options.names]
    print(format_table(KERNELS_HEADER, rows, options.markdown), flush=True)
    print()
    whole = measure_model(options.whole, options.rounds, options.threads)
    print(f"{options.whole}, {options.threads} threads")
    print(format_table(WHOLE_HEADER, whole, options.markdown))


if __name__ == "__main__":
    main()
