"""Random schedules of the search for GPUs, checked without a GPU; it prints how many are right.

Computations are drawn from products, batched products, products of 16-bit numbers, convolutions, pools,
reductions, softmax, layer norms and element-wise chains. Each schedule is lowered to kernels, verified,
interpreted, which finds races, and run as the LLVM IR for NVPTX on this CPU; the results are compared with
those of the loops as declared. `ptxas` counts registers and spilled bytes of a sample. Nothing is said about
speed.

Usage: python -m benchmarks.gpu_schedules [--schedules 500] [--seed 0] [--ptxas 40] [--seconds S]
[--families NAME ...]
It exits with 1 if a schedule is wrong, or a kernel spills.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from tests.gpu_schedules import FAMILIES, check_schedule, drawn_schedules

from intarsia.autoschedule.task import SearchTask
from intarsia.ir import PrimFunc
from intarsia.native.emission.builder import ModuleText
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.gpu.generate_ptx import generate_ptx
from intarsia.native.gpu.ptxas import KernelResources, assemble, find_ptxas
from intarsia.native.loop_state import LoopState
from intarsia.support.errors import IntarsiaError

MODEL = "sm_80"
BATCH = 20
"""Number of schedules whose kernels are assembled together."""


def schedules(families: list[str], count: int, seed: int) -> Iterator[tuple[str, SearchTask, LoopState]]:
    """Yield schedules of the families in turn."""
    drawn = 0
    while drawn < count:
        for family in families:
            for task, state in drawn_schedules(family, seed):
                yield family, task, state
                drawn += 1
        seed += 1


def resources_of(functions: Sequence[tuple[str, PrimFunc]]) -> Iterator[tuple[str, KernelResources]]:
    """Yield what ptxas counts for the kernels of functions, with their schedules."""
    for start in range(0, len(functions), BATCH):
        batch, module = functions[start : start + BATCH], ModuleText()
        for number, (_, function) in enumerate(batch):
            emit_kernels(function, f"k{number}", MODEL, module)
        for kernel in assemble(generate_ptx(module.text(), MODEL), MODEL).kernels:
            number = int(kernel.name.partition("_")[0].removeprefix("k"))
            yield batch[number][0], kernel


def main() -> int:
    """Check schedules, and print their number."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedules", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ptxas", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no schedule is begun later")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    checked: list[tuple[str, PrimFunc]] = []
    start = time.monotonic()
    for family, task, state in schedules(given.families, given.schedules, given.seed):
        number = sum(counts.values())
        if time.monotonic() - start > given.seconds:
            break
        try:
            checked.append((f"{family}:\n{state}", check_schedule(task, state, number)))
        except (IntarsiaError, AssertionError) as error:  # refused, a race, or another result
            wrong.append(f"{family}: {error}\n{state}")
        counts[family] += 1
    seconds = time.monotonic() - start
    for family, count in counts.items():
        print(f"{family:24}{count:5}")
    print(f"{sum(counts.values())} schedules, {len(wrong)} wrong, {seconds:.0f} s")
    print("\n".join(wrong))
    if find_ptxas() is None:
        print("there is no ptxas: pip install 'intarsia[ptxas]'")
        return 1 if wrong else 0
    sample = Random(given.seed).sample(checked, min(given.ptxas, len(checked)))
    return 1 if _print_resources(sample) or wrong else 0


def _print_resources(sample: list[tuple[str, PrimFunc]]) -> int:
    """Print what ptxas counts, and the schedules of kernels that spill; return the number of these."""
    kernels = list(resources_of(sample))
    registers = sorted(kernel.registers for _, kernel in kernels)
    spilled = [(schedule, kernel) for schedule, kernel in kernels if kernel.spilled_bytes]
    print(
        f"ptxas for {MODEL}: {len(kernels)} kernels of {len(sample)} schedules, registers {registers[0]} to "
        f"{registers[-1]}, median {registers[len(registers) // 2]}, {len(spilled)} spill"
    )
    for schedule, kernel in spilled:
        print(f"{kernel.spilled_bytes} bytes: {schedule}")
    return len(spilled)


if __name__ == "__main__":
    sys.exit(main())
