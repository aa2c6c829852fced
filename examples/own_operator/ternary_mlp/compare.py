"""Tune the operator and its composition, and measure both interleaved.

python -m ternary_mlp.compare --rows 1 --columns 2048 --width 5632 --budget 60s
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import intarsia as ia

from .models import composed_model, draw_weights, fused_model
from .packing import Array

ROUNDS = 101
"""Number of timed calls of each executable, alternating."""


def main() -> None:
    """Print the latency of both executables; the artifacts are written into the current folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--columns", type=int, default=2048)
    parser.add_argument("--width", type=int, default=5632)
    parser.add_argument("--budget", default="60s")
    options = parser.parse_args()
    weights = draw_weights(options.columns, options.width)
    models = {
        "fused": fused_model(options.rows, weights),
        "composed": composed_model(options.rows, weights),
    }
    paths = {}
    for name, model in models.items():
        result = ia.tune(model, budget=options.budget)
        paths[name] = Path(f"{name}.intarsia")
        result.executable.save(paths[name])
        print(f"{name}: {', '.join(sorted({k.source.toolchain for k in result.executable.kernels}))}")
    executables = {name: ia.load(path) for name, path in paths.items()}
    x = np.random.default_rng(1).standard_normal((options.rows, options.columns)).astype(np.float32)
    compare(executables, x)


def compare(executables: dict[str, ia.Executable], x: Array) -> None:
    """Print the largest difference of results, and the median latency of each executable."""
    results = {name: exe(x) for name, exe in executables.items()}
    difference = np.abs(results["fused"] - results["composed"]).max() / np.abs(results["composed"]).max()
    print(f"largest difference: {difference:.1e}")
    seconds: dict[str, list[float]] = {name: [] for name in executables}
    for _ in range(ROUNDS):
        for name, exe in executables.items():
            start = time.perf_counter()
            exe(x)
            seconds[name].append(time.perf_counter() - start)
    medians = {name: float(np.median(items)) for name, items in seconds.items()}
    for name, median in medians.items():
        print(f"{name}: {median * 1e3:.3f} ms")
    print(f"the operator is {medians['composed'] / medians['fused']:.2f} times as fast as its composition")


if __name__ == "__main__":
    main()
