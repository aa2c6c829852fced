"""Build times of native programs in this tree and in another one, interleaved.

Each build runs in a process of its own: with empty caches (cold), with the kernels of the program in the
user's cache, but not the program (kernels), and with both (warm). Importing the model is not timed. Wall time
and CPU time of the process and of the processes that help it are printed, the shortest of the rounds: on a
machine with other work only CPU time says something. Ratios are this tree over the other. Bytecode of both
trees is written before: compiling sources is no part of a build.

The other tree is a checkout, made for example by `git worktree add --detach /tmp/before main`.

Usage: python -m benchmarks.build_times [NAME ...] [--against FOLDER] [--rounds N] [--threads N]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, TypeAlias

from intarsia.support.environment import PROGRAM_CACHE
from intarsia.target.cpu import usable_cores

MODELS: Final = (
    "vgg19", "densenet121", "nasnet_a", "bert_base", "resnet50", "mobilenet_v2", "inception_v1",
    "efficientnet_b0", "convnext_tiny", "vit_base", "unet", "shufflenet",
)  # fmt: skip
HEADER: Final = ("model", "cache", "wall, s", "CPU, s", "wall ratio", "CPU ratio")
CACHES: Final = ("cold", "kernels", "warm")

_BUILD: Final = """
import json, resource, sys, time
from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.passes import partition_whole
from intarsia.target import Target
module = from_onnx(build_model(sys.argv[1]))
marked = partition_whole(module, Target.for_toolchain("native", threads=int(sys.argv[2])))
def cpu_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in used)
wall, cpu = time.perf_counter(), cpu_seconds()
build(marked)
print(json.dumps([time.perf_counter() - wall, cpu_seconds() - cpu]))
"""

Times: TypeAlias = dict[str, list[tuple[float, float]]]
"""Wall and CPU seconds of each build, by the state of the cache."""


def measure(name: str, trees: list[Path], rounds: int, threads: int) -> list[Times]:
    """Return the times of a model's builds in each tree."""
    times: list[Times] = [{cache: [] for cache in CACHES} for _ in trees]
    for _ in range(rounds):
        for tree, of_tree in zip(trees, times, strict=True):
            with tempfile.TemporaryDirectory() as folder:
                environment = os.environ | {"PYTHONPATH": str(tree / "src"), "XDG_CACHE_HOME": folder}
                command = [sys.executable, "-c", _BUILD, name, str(threads)]
                for cache in CACHES:  # the cold build fills the caches of the others
                    environment[PROGRAM_CACHE] = "0" if cache == "kernels" else ""
                    output = subprocess.check_output(command, env=environment, text=True, cwd=folder)
                    wall, cpu = json.loads(output)
                    of_tree[cache].append((wall, cpu))
    return times


def shortest(times: Times, cache: str) -> tuple[float, float]:
    """Return the shortest wall and the shortest CPU time."""
    walls, cpus = zip(*times[cache], strict=True)
    return min(walls), min(cpus)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--against", type=Path, help="checkout of the tree to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=usable_cores(Path("/")))
    options = parser.parse_args()
    trees = [Path(__file__).resolve().parents[1]]
    trees += [options.against.resolve()] if options.against else []
    for tree in trees:
        subprocess.run([sys.executable, "-m", "compileall", "-q", tree / "src"], check=True)
    ratios: dict[str, list[tuple[float, float]]] = {cache: [] for cache in CACHES}
    print("  ".join(HEADER))
    for name in options.names:
        times = measure(name, trees, options.rounds, options.threads)
        for cache in CACHES:
            wall, cpu = shortest(times[0], cache)
            cells = [name, cache, f"{wall:.2f}", f"{cpu:.2f}"]
            if len(trees) > 1:
                before = shortest(times[1], cache)
                ratios[cache].append((wall / before[0], cpu / before[1]))
                cells += [f"{ratio:.2f}" for ratio in ratios[cache][-1]]
            print("  ".join(cells), flush=True)
    for cache, pairs in ratios.items():
        if pairs:
            walls, cpus = zip(*pairs, strict=True)
            means = statistics.geometric_mean(walls), statistics.geometric_mean(cpus)
            print(f"{cache}: geometric mean of wall ratios {means[0]:.2f}, of CPU ratios {means[1]:.2f}")


if __name__ == "__main__":
    main()
