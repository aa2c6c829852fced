"""What the storage of values can change: native with other plans of memory against its own, on the zoo.

Plans are interleaved in one process on one thread; times are CPU seconds, the least of all rounds. A ratio is
the time of a plan over that of native's own, which is also measured a second time (`again`), for the noise.

apart    every value has memory of its own
by time  the arena is planned in the order of time, not of size
copied   Concat, Slice and channel shuffles have kernels (`-decisions=KEY:in_place=false`)

Usage: python -m benchmarks.storage_plans [NAME ...] [--seconds S]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from benchmarks.convolution_layers import least_seconds

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.measure.inputs import random_inputs
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.arena import ArenaPlan, Lifetime, plan_arena_by_size, plan_arena_by_time
from intarsia.target import Target
from intarsia.toolchain.native.plan import planned_region

OWN: Final = "own"
_PLANNER: Final = sys.modules["intarsia.native.graph.plan_region"]


def plan_apart(lifetimes: Sequence[Lifetime], alignment: int) -> ArenaPlan:
    """Plan an arena in which no values share memory."""
    last = max((item.last for item in lifetimes), default=0)
    return plan_arena_by_size([replace(item, first=0, last=last) for item in lifetimes], alignment)


@contextmanager
def planner(function: Any) -> Iterator[None]:
    """Let native plan arenas by another function."""
    vars(_PLANNER)["plan_arena_by_size"] = function
    try:
        yield
    finally:
        vars(_PLANNER)["plan_arena_by_size"] = plan_arena_by_size


def built_plans(name: str) -> tuple[dict[str, Executable], list[Any]]:
    """Return a model with each plan, and inputs for it."""
    module, target = from_onnx(build_model(name)), Target.parse("cpu -toolchain=native -threads=1")
    given = partition_whole(module, target)
    programs = {OWN: build(given)}
    for plan, function in (("apart", plan_apart), ("by time", plan_arena_by_time)):
        with planner(function):
            programs[plan] = build(given)
    plans = [planned_region(kernel.source).plan for kernel in programs[OWN].kernels]
    keys = sorted({key for plan in plans for key in plan.rule_groups})
    decided = target.with_options(decisions=",".join(f"{key}:in_place=false" for key in keys))
    programs |= {"copied": build(partition_whole(module, decided)), "again": build(given)}
    inputs = random_inputs(module["main"])
    return programs, [inputs[info.name] for info in programs[OWN].inputs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=["squeezenet", "bert_tiny", "mobilenet_v2", "shufflenet"])
    parser.add_argument("--seconds", type=float, default=15.0)
    options = parser.parse_args()
    for name in options.names:
        programs, arrays = built_plans(name)
        calls = {plan: partial(program.run_flat, *arrays) for plan, program in programs.items()}
        least = least_seconds(calls, options.seconds)
        ratios = ", ".join(f"{plan} {took / least[OWN]:.3f}" for plan, took in least.items() if plan != OWN)
        print(f"{name} ({1e3 * least[OWN]:.3f} ms): {ratios}", flush=True)


if __name__ == "__main__":
    main()
