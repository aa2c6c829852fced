"""Cost of alternating between two toolchains in one process, over a chain of convolutions.

Each row is the same program with other partitions; all are measured interleaved in one process. Mixing must
not cost more than its parts: the alternating chain is compared with the mean of the chains that each
toolchain runs alone, cut at the same edges. The rows with a single partition show the cost of cutting itself.
Usage: python -m benchmarks.mixing [--toolchains A B] [--json] [--length N] [--channels N] [--size N]
    [--seconds S]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import numpy as np

from intarsia.build import build
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.placement.placement import Partition, Placement, stable_nodes
from intarsia.ir import Call, Constant, DType, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.op import call
from intarsia.runtime.executable import Executable


def chain(length: int, channels: int, size: int) -> IRModule:
    """Return a chain of 3x3 convolutions that keep the shape."""
    generator = np.random.default_rng(0)
    x = Var("x", checked_type=TensorType((1, channels, size, size), DType.FLOAT32))
    value: Expr = x
    for _ in range(length):
        scale = (9 * channels) ** -0.5
        weights = generator.normal(scale=scale, size=(channels, channels, 3, 3)).astype(np.float32)
        value = call("Conv", value, Constant(weights), pads=(1, 1, 1, 1))
    return IRModule.from_expr(Function((x,), value))


def build_chain(module: IRModule, toolchains: Sequence[str]) -> Executable:
    """Cut the chain into as many partitions as there are toolchains, and build it."""
    graph = DataflowGraph.of(module["main"])
    calls = [n for n, index in enumerate(stable_nodes(graph)) if isinstance(graph[index].expr, Call)]
    pieces = np.array_split(np.array(calls), len(toolchains))
    partitions = tuple(
        Partition("main", f"cpu -toolchain={name}", tuple(map(int, piece)), "Conv")
        for name, piece in zip(toolchains, pieces, strict=True)
    )
    return build(Placement(partitions).applied(module))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--toolchains", nargs=2, metavar=("A", "B"), default=["onnxruntime", "openvino"])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--length", type=int, default=12)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--size", type=int, default=28)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    module = chain(options.length, options.channels, options.size)
    first, second = options.toolchains
    cuts = {
        f"{first}, whole": [first],
        f"{second}, whole": [second],
        f"{first}, cut": [first] * options.length,
        f"{second}, cut": [second] * options.length,
        "alternating": [options.toolchains[position % 2] for position in range(options.length)],
        "two halves": [first, second],
    }
    executables = {name: build_chain(module, toolchains) for name, toolchains in cuts.items()}
    x = np.random.default_rng(1).normal(size=(1, options.channels, options.size, options.size))
    data = x.astype(np.float32)
    calls = {name: (lambda exe=exe: exe.run_flat(data)) for name, exe in executables.items()}
    comparison = time_interleaved(calls, TimingPolicy(max_seconds=options.seconds, repeats=60))
    times = {name: timing.median for name, timing in comparison.timings.items()}
    parts = (times[f"{first}, cut"] + times[f"{second}, cut"]) / 2
    ratios = {name: comparison.ratio(name, comparison.best) for name in times}
    if options.json:
        rows = {
            name: {"seconds": times[name], "ratio": ratios[name].ratio, "low": ratios[name].low}
            for name in times
        }
        print(json.dumps({"rows": rows, "alternating_over_parts": times["alternating"] / parts}, indent=2))
        return
    for name, seconds in times.items():
        ratio = ratios[name]
        print(f"{name:20} {seconds * 1e3:8.3f} ms  {ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f})")
    print(f"alternating over the mean of its parts: {times['alternating'] / parts:.3f}")


if __name__ == "__main__":
    main()
