"""Calls per second of clones in several threads, and of Python code beside a kernel that runs.

The first table has the calls per second of one executable with all threads of the machine, of as many clones
on one thread each, called directly by a thread each, and of a pool of those: called by as many threads as it
has streams, by four times as many, by one thread that keeps as many calls submitted, by callbacks that submit
the next call each, and by as many tasks of asyncio. They are measured interleaved; numbers are medians over
the rounds. The second has the steps per second of a loop of Python code alone, and while another thread runs
kernels; on two cores both are about the same where the kernels release the interpreter lock, and half where
they do not.

    python -m benchmarks.concurrency [MODEL ...] [--seconds 1] [--rounds 5] [--streams N]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import intarsia as ia
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.measure.inputs import random_inputs
from intarsia.measure.load.generate_load import run_chained_loop, run_closed_loop
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Value
from intarsia.target import Target
from intarsia.target.cpu import usable_cores

CLIENTS_PER_STREAM = 4
TOOLCHAINS = ("native", "onnxruntime", "openvino")


def count_calls(calls: Sequence[Callable[[], object]], seconds: float) -> float:
    """Return how often per second threads, each with a function of its own, call them together."""
    counts = [0] * len(calls)
    end = time.perf_counter() + seconds

    def repeat(number: int) -> None:
        while time.perf_counter() < end:
            calls[number]()
            counts[number] += 1

    threads = [threading.Thread(target=repeat, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def count_submitted(pool: ia.Pool, inputs: Sequence[Value], concurrency: int, seconds: float) -> float:
    """Return how many calls per second end if one thread keeps so many under way."""
    return run_closed_loop(lambda _: pool.submit(tuple(inputs)), concurrency, seconds).rate


def count_chained(pool: ia.Pool, inputs: Sequence[Value], concurrency: int, seconds: float) -> float:
    """Return how many calls per second end if the callback of each submits the next one."""
    return run_chained_loop(lambda _: pool.submit(tuple(inputs)), concurrency, seconds).rate


def count_awaited(pool: ia.Pool, inputs: Sequence[Value], concurrency: int, seconds: float) -> float:
    """Return how many calls per second end if so many tasks of asyncio wait for one each."""
    end = time.perf_counter() + seconds

    async def repeat() -> int:
        count = 0
        while time.perf_counter() < end:
            await pool.run_async(tuple(inputs))
            count += 1
        return count

    async def repeat_all() -> int:
        return sum(await asyncio.gather(*(repeat() for _ in range(concurrency))))

    return asyncio.run(repeat_all()) / seconds


def compare_ways(
    exe: Executable, wide: Executable, inputs: Sequence[Value], options: argparse.Namespace
) -> str:
    """Return a row: calls per second of one executable, of clones, and of a pool."""
    streams = options.streams
    with ia.Pool(exe, streams, 1) as pool:
        clones = exe.clones(streams, 1)
        direct: list[list[Callable[[], object]]] = [
            [lambda: wide(*inputs)],
            [lambda clone=clone: clone(*inputs) for clone in clones],  # type: ignore[misc]  # bound early
            [lambda: pool(*inputs)] * streams,
            [lambda: pool(*inputs)] * (CLIENTS_PER_STREAM * streams),
        ]
        ways = [partial(count_calls, calls, options.seconds) for calls in direct]
        load = pool, inputs, CLIENTS_PER_STREAM * streams, options.seconds
        ways += [partial(count, *load) for count in (count_submitted, count_chained, count_awaited)]
        rates = [[way() for way in ways] for _ in range(options.rounds)]
    medians = [statistics.median(column) for column in zip(*rates, strict=True)]
    return " ".join(f"{rate:9.0f}" for rate in medians) + f" {medians[1] / medians[0]:10.2f}"


def compare_python(exe: Executable, inputs: Sequence[Value], options: argparse.Namespace) -> str:
    """Return a row: steps of Python code per second, alone and beside kernels."""
    kernel = exe.clone(1)

    def step() -> None:
        sum(number for number in range(100))

    alone, beside = [], []
    for _ in range(options.rounds):
        alone.append(count_calls([step], options.seconds))
        stop = threading.Event()
        other = threading.Thread(target=lambda s=stop: [kernel(*inputs) for _ in iter(s.is_set, True)])
        other.start()
        beside.append(count_calls([step], options.seconds))
        stop.set()
        other.join()
    first, second = statistics.median(alone), statistics.median(beside)
    return f"{first:12.0f} {second:12.0f} {second / first:8.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", default=["squeezenet", "bert_tiny"])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=usable_cores(Path("/")))
    options = parser.parse_args()
    names = ("one", "clones", "pool", "busy pool", "submit", "chained", "tasks")
    print(f"{'':28} {' '.join(f'{name:>9}' for name in names)} clones/one   calls per second")
    python_rows = []
    for name in options.models:
        module = from_onnx(build_model(name))
        inputs = list(random_inputs(module["main"]).values())
        for toolchain in TOOLCHAINS:
            narrow, wide = (
                ia.build(partition_whole(module, Target.for_toolchain(toolchain, threads=threads)))
                for threads in (1, usable_cores(Path("/")))
            )
            print(f"{name:16}{toolchain:12}", compare_ways(narrow, wide, inputs, options), flush=True)
            python_rows.append(f"{name:16}{toolchain:12} {compare_python(narrow, inputs, options)}")
    print(f"\n{'':28} {'alone':>12} {'beside':>12} {'ratio':>8}   steps of Python per second")
    print(*python_rows, sep="\n")


if __name__ == "__main__":
    main()
