"""Soak: clients call programs on every toolchain while artifacts are loaded and closed, and nothing grows.

Eight threads call pools of programs on each toolchain, and one of several kernels; four other threads load
each artifact again and again, call it once, alone or in a pool, and close it. Every result is compared with
that of a serial call. Once the caches of the engines are warm, resident memory, open descriptors and threads
are noted at regular intervals; they have to be flat: the medians of the last third may exceed those of the
first by a few per cent of memory, and by no descriptor and no thread.

    python -m benchmarks.soak [--seconds 300] [--clients 8] [--loaders 4]

An hour of it loads more than 100,000 artifacts. The exit code is 1 if a result is wrong, a call fails, or
something grows.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import onnx.parser

import intarsia as ia
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.passes import partition_for
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.runtime.pool import Pool
from intarsia.target import Target
from intarsia.toolchain import usable_toolchains

MODEL: Final = "mnist"
MIXED: Final = """<ir_version: 10, opset_import: ["" : 20]> g (float[64,64] x) => (float[64,64] y) {
  a = MatMul (x, x) b = Softmax (a) c = NonZero (b) d = Cast <to = 1> (c)
  e = ReduceSum <keepdims = 0> (d) y = Add (b, e)
}"""
"""A program that native has no kernel for as a whole."""
SETS: Final = 4
"""Number of different inputs of each program."""
WARM_UP_SHARE: Final = 0.2
"""Share of the time after which engines have filled their caches."""
MEMORY_GROWTH: Final = 0.03
"""Growth of the resident memory, as a share, that is noise of allocators."""


@dataclass
class Usage:
    """What the process holds, at several times.

    Attributes:
        memory: Resident memory in MiB.
        descriptors: Number of open file descriptors.
        threads: Number of threads.
    """

    memory: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)

    def note(self) -> None:
        """Note the present state."""
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        self.memory.append(int(status["VmRSS"].split()[0]) / 1024)
        self.threads.append(int(status["Threads"]))
        self.descriptors.append(sum(1 for _ in Path("/proc/self/fd").iterdir()))

    def growth(self) -> list[str]:
        """Return what has grown, in words."""
        grown = []
        for name, values, tolerance in (
            ("memory in MiB", self.memory, MEMORY_GROWTH),
            ("descriptors", self.descriptors, 0.0),
            ("threads", self.threads, 0.0),
        ):
            third = max(1, len(values) // 3)
            # Loads under way have threads and files for a moment, more of them on a busy machine.
            # What leaks is there all the time.
            kept = statistics.median if name.startswith("memory") else min
            first, last = kept(values[:third]), kept(values[-third:])
            print(f"{name:16} {first:8.1f} at first, {last:8.1f} at last, at most {max(values):8.1f}")
            if last > first * (1 + tolerance):
                grown.append(f"{name} grew from {first:g} to {last:g}")
        return grown


@dataclass(eq=False)
class Program:
    """A program with inputs and the results of serial calls.

    Attributes:
        name: Name of its toolchain, or "mixed".
        artifact: Path of its artifact.
        pool: Pool that clients call.
        inputs: Inputs of several calls.
        expected: Results of these.
    """

    name: str
    artifact: Path
    pool: Pool
    inputs: Sequence[Array]
    expected: Sequence[Array]


@dataclass
class Tally:
    """Loads so far, one number for each thread that loads, and what went wrong."""

    loads: list[int]
    faults: list[str] = field(default_factory=list)


def build_programs(folder: Path) -> list[Program]:
    module = from_onnx(build_model(MODEL))
    names = [toolchain.name for toolchain in usable_toolchains()]
    programs = [
        new_program(folder, name, module, ia.build(module, str(Target.for_toolchain(name, threads=1))))
        for name in names
    ]
    mixed = from_onnx(onnx.parser.parse_model(MIXED))
    targets = [str(Target.for_toolchain(item, threads=1)) for item in ("native", "onnxruntime")]
    exe = ia.build(partition_for(mixed, *targets))
    assert len(exe.kernels) > 1
    return [*programs, new_program(folder, "mixed", mixed, exe)]


def new_program(folder: Path, name: str, module: IRModule, exe: Executable) -> Program:
    sets = [next(iter(random_inputs(module["main"], seed=seed).values())) for seed in range(SETS)]
    exe.save(folder / f"{name}.intarsia")
    expected = [np.asarray(exe(x)) for x in sets]
    with exe:
        pool = Pool(exe, 2, 1)
    pool.submit(sets[0]).result()  # the pool's threads start now, and not with the first call that waits
    return Program(name, folder / f"{name}.intarsia", pool, sets, expected)


def call_again_and_again(programs: Sequence[Program], number: int, end: float, tally: Tally) -> None:
    rng = np.random.default_rng(number)
    while time.monotonic() < end and not tally.faults:
        program, index = programs[int(rng.integers(len(programs)))], int(rng.integers(SETS))
        try:
            result = program.pool(program.inputs[index])
        except Exception as error:  # whatever it is, it is a fault
            tally.faults.append(f"{program.name}: {type(error).__name__}: {error}")
            return
        if not np.array_equal(result, program.expected[index]):
            tally.faults.append(f"{program.name}: the result of set {index} differs from a serial call's")


def load_again_and_again(programs: Sequence[Program], number: int, end: float, tally: Tally) -> None:
    for turn in itertools.count(number):  # the threads begin with different programs
        if time.monotonic() >= end or tally.faults:
            return
        program = programs[turn % len(programs)]
        try:
            with ia.load(program.artifact) as exe:
                result = call_once(exe, program, in_pool=turn % 3 == 0)
        except Exception as error:  # whatever it is, it is a fault
            tally.faults.append(f"{program.name}, loaded: {type(error).__name__}: {error}")
            return
        if not np.allclose(result, program.expected[0], rtol=1e-5, atol=1e-5):
            tally.faults.append(f"{program.name}: a loaded artifact gives another result")
        tally.loads[number] += 1


def call_once(exe: Executable, program: Program, *, in_pool: bool) -> Array:
    if not in_pool:
        return np.asarray(exe(program.inputs[0]))
    with Pool(exe, 2, 1) as pool:
        return np.asarray(pool(program.inputs[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--loaders", type=int, default=4)
    options = parser.parse_args()
    usage, tally = Usage(), Tally([0] * options.loaders)
    with tempfile.TemporaryDirectory() as folder:
        programs = build_programs(Path(folder))
        # The reference is a hundred times as slow, and would leave no calls to the others.
        quick = [program for program in programs if program.name != "reference"]
        start = time.monotonic()
        end = start + options.seconds
        threads = [
            threading.Thread(target=call_again_and_again, args=(quick, number, end, tally))
            for number in range(options.clients)
        ]
        threads += [
            threading.Thread(target=load_again_and_again, args=(programs, number, end, tally))
            for number in range(options.loaders)
        ]
        for thread in threads:
            thread.start()
        time.sleep(options.seconds * WARM_UP_SHARE)
        while time.monotonic() < end - 1:
            gc.collect()
            usage.note()
            time.sleep(min(1.0, options.seconds / 100))
        for thread in threads:
            thread.join()
        calls = 0
        for program in programs:
            counts = program.pool.counts()
            calls += counts.done
            program.pool.close()
            print(f"{program.name:16} {counts.done:8} calls, {counts.failed} failed")
    seconds, loads = time.monotonic() - start, sum(tally.loads)
    print(f"{calls} calls and {loads} loads in {seconds:.0f} s: {loads / seconds * 3600:.0f} loads an hour")
    faults = [*tally.faults, *usage.growth()]
    print(*faults or ["nothing grew, and every result was right"], sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
