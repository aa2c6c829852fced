"""Time a model of two branches on one device and on two groups of cores, interleaved, copies included.

"one" is cpu:0 with all cores, which runs one branch after the other; "two" has a branch on each of cpu:0 and
cpu:1, half of the cores each, and copies the input there and the result back. The ideal ratio is that of half
the work on half of the cores to all the work on all cores: small operators gain most, because fewer threads
synchronise. "mocks" is the same program on mock devices, which copy as much and have all cores.
Usage: python -m benchmarks.devices [--json] [--toolchain NAME] [--seconds S] [--trace FILE]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

import intarsia as ia
from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Op,
    TensorType,
    Var,
    with_fields,
)
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.op import call
from intarsia.runtime.executable import Executable
from intarsia.target import VirtualDevice

CHANNELS, DEPTH = 32, 6
SIZES = (7, 14, 28, 56)
BRANCH_DEVICES = {"one": ("cpu:0", "cpu:0"), "two": ("cpu:0", "cpu:1"), "mocks": ("mock:0", "mock:1")}
"""Devices of the two branches, by the name of the variant."""


@dataclass(frozen=True)
class Row:
    """One size of image.

    Attributes:
        size: Height and width of the image in pixels.
        one_seconds: Median time on one device.
        two: Ratio of the time on two groups of cores to that on one device.
        low: Lower end of the 95 % interval of `two`.
        high: Upper end of the 95 % interval of `two`.
        mocks: Ratio of the time on mock devices to that on one device.
        copy_microseconds: Time of the copies of one run on two groups of cores.
    """

    size: int
    one_seconds: float
    two: float
    low: float
    high: float
    mocks: float
    copy_microseconds: float


def image(name: str, size: int) -> Var:
    return Var(name, checked_type=TensorType((1, CHANNELS, size, size), "float32"))  # type: ignore[arg-type]  # as spelled


def branch(size: int, seed: int, toolchain: str) -> Function:
    """Return a chain of convolutions as one region of a toolchain."""
    draw = np.random.default_rng(seed)
    x = image("x", size)
    value: Expr = x
    for _ in range(DEPTH):
        weight = draw.standard_normal((CHANNELS, CHANNELS, 3, 3), np.float32) / 17
        value = call("Relu", call("Conv", value, Constant(weight), pads=(1, 1, 1, 1)))
    return Function((x,), value, Attrs({"Compiler": toolchain}))


def program(size: int, toolchain: str, devices: tuple[str, str]) -> IRModule:
    """Return the sum of both branches on one input, each branch on its device."""
    here, there = (VirtualDevice.parse(f"VirtualDevice({device})") for device in devices)
    x = with_fields(image("x", size), virtual_device=here)
    functions = {GlobalVar(f"branch{seed}"): branch(size, seed, toolchain) for seed in range(2)}
    first, second = functions

    def call_on(device: VirtualDevice, op: Expr, arg: Expr) -> Call:
        return Call(op, (arg,), checked_type=x.checked_type, virtual_device=device)

    copy = Op("device_copy", "intarsia")
    copied_input = x if here == there else call_on(there, copy, x)
    remote_result = call_on(there, second, copied_input)
    result = remote_result if here == there else call_on(here, copy, remote_result)
    body = with_fields(call("Add", call_on(here, first, x), result), virtual_device=here)
    return IRModule({GlobalVar("main"): Function((x,), body), **functions})


def measure(size: int, toolchain: str, seconds: float, trace: Path | None) -> Row:
    built: dict[str, Executable] = {
        name: ia.build(program(size, toolchain, devices), ia.Target.for_toolchain(toolchain))
        for name, devices in BRANCH_DEVICES.items()
    }
    x = np.random.default_rng(0).standard_normal((1, CHANNELS, size, size), np.float32)
    results = [exe(x) for exe in built.values()]
    for actual in results[1:]:
        np.testing.assert_allclose(actual, results[0], rtol=1e-3, atol=1e-3)
    calls: dict[str, Callable[[], object]] = {name: partial(exe, x) for name, exe in built.items()}
    comparison = time_interleaved(calls, TimingPolicy(repeats=200, max_seconds=seconds / len(calls)))
    two, mocks = comparison.ratio("two", "one"), comparison.ratio("mocks", "one")
    rows = built["two"].profile(x).rows
    copied = sum(1e6 * row.seconds for row in rows if row.toolchain == "copy")
    if trace is not None:
        trace.write_text(built["two"].trace(x).to_chrome_trace())
    for exe in built.values():
        exe.close()
    one = comparison.timings["one"].median
    return Row(size, one, two.ratio, two.low, two.high, mocks.ratio, copied)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--toolchain", default="onnxruntime")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--trace", type=Path, help="write the last size's steps as a Chrome trace")
    options = parser.parse_args()
    rows = [measure(size, options.toolchain, options.seconds, options.trace) for size in SIZES]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"two branches of {DEPTH} convolutions on {options.toolchain}; ratios to one device, interleaved")
    for row in rows:
        print(
            f"  {CHANNELS}x{row.size:2}x{row.size:2}  one {row.one_seconds * 1e3:8.3f} ms   "
            f"two {row.two:.3f} ({row.low:.3f} to {row.high:.3f})   mocks {row.mocks:.3f}   "
            f"copies {row.copy_microseconds:.1f} us"
        )


if __name__ == "__main__":
    main()
