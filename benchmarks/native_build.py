"""What native kernels cost before they run: making each, building a model, keeping and loading it.

The first table has one line a model: milliseconds from the state of the loops to a callable kernel, for each
different kernel of the model. The second is about one model, each line the best of several new processes:
building with an empty cache of kernels and with a full one (the program is there, and LLVM is not yet
loaded), loading the artifact, alone and with everything that Python imports for that, and its size.
Memory is the most that the process had, mapped files included.

Usage: python benchmarks/native_build.py [NAME ...] [--whole resnet50] [--rounds 3] [--threads N]
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


def kernel_costs(name: str, rounds: int, threads: int) -> tuple[str, ...]:
    """The line of a model: how long its different kernels take, the best of the rounds for each."""
    isa = Isa.host()
    plan = plan_region(simplified(from_onnx(build_model(name))["main"]), isa)
    dags = list(dict.fromkeys(kernel.dag for kernel in plan.kernels))
    seconds(dags[0], isa, threads)  # LLVM is loaded
    found = [min(seconds(dag, isa, threads) for _ in range(rounds)) for dag in dags]
    states = [state for _, state in found]
    costs = sorted(cost for cost, _ in found)
    high = costs[min(len(costs) - 1, int(0.95 * len(costs)))]
    times = (statistics.median(costs), high, costs[-1])
    shown = (f"{1e3 * each:.1f}" for each in times)
    return (name, str(len(dags)), *shown, f"{sum(costs):.2f}", f"{1e3 * statistics.median(states):.1f}")


def seconds(dag: ComputeDAG, isa: Isa, threads: int) -> tuple[float, float]:
    """Seconds from the state of a kernel to the callable, and those of finding the state."""
    began = time.perf_counter()
    chosen = scheduled(dag, isa, threads)
    decided = time.perf_counter()
    loops = IRModule({GlobalVar("f"): chosen.lowered()})
    function = default_tir(isa.vector_bytes, isa.vector_registers)(loops).prim_func("f")
    compile_kernel(function, isa).load()
    return time.perf_counter() - decided, decided - began


def whole_costs(name: str, rounds: int, threads: int) -> list[tuple[str, ...]]:
    """The lines about one model."""
    with tempfile.TemporaryDirectory() as place:
        folder, artifact = Path(place), Path(place) / "model.intarsia"
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")  # as after the first use

        def best(program: str, *caches: str, key: str = "seconds") -> dict[str, Any]:
            runs = []
            for cache in caches:
                command = [sys.executable, "-c", program, name, str(artifact), str(threads)]
                given = {**environment, "XDG_CACHE_HOME": str(folder / cache)}
                runs.append(json.loads(subprocess.check_output(command, env=given, text=True)))
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
    )  # of the program, which the artifact holds as it was given
    return [
        ("build, no kernel in the cache", f"{cold['seconds']:.2f}", "20", f"{cold['memory'] / 1e6:.0f}"),
        ("build, all kernels in the cache", f"{warm['seconds']:.2f}", "3", f"{warm['memory'] / 1e6:.0f}"),
        ("load", f"{loads['seconds']:.3f}", "0.5", f"{loads['memory'] / 1e6:.0f}"),
        ("import and load", f"{whole['whole']:.3f}", "", f"{whole['memory'] / 1e6:.0f}"),
        (f"artifact: {size / 1e6:.0f} MB, weights of the program: {weights / 1e6:.0f} MB", "", "", ""),
    ]


def shown(header: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> str:
    """A table, one row a line."""
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
    rows = [kernel_costs(name, options.rounds, options.threads) for name in options.names]
    print(shown(KERNELS_HEADER, rows, options.markdown), flush=True)
    print()
    whole = whole_costs(options.whole, options.rounds, options.threads)
    print(f"{options.whole}, {options.threads} threads")
    print(shown(WHOLE_HEADER, whole, options.markdown))


if __name__ == "__main__":
    main()
