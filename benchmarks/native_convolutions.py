"""Convolutions and pools of known networks by native kernels with default schedules, and by the engines.

All are timed in turns in one process. A native kernel is timed as it runs inside a region: blocked tensors,
packed weights, bias added. `+layouts` has the conversions of its
input and its result from and to NCHW as well.
The ratios are the time of the faster engine, called with arrays, by that of the kernel; the percentage is
of the peak that sums in registers reach here.
Usage: python benchmarks/native_convolutions.py [--threads N] [--seconds S] [--only TEXT]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.build import build
from intarsia.ir import Constant, DType, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.native import te
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.call_table import CallTable, KernelCall
from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.machine.isa import Isa
from intarsia.native.peak import measured_peak
from intarsia.native.schedule import ScheduledDag, scheduled
from intarsia.native.te.operators.blocked_convolution import (
    blocked_convolution,
    blocks_of_groups,
    convolution_of_plain,
    depthwise_convolution,
    pack_depthwise_weight,
    pack_weight,
    pack_weight_of_plain,
)
from intarsia.native.te.operators.blocked_layout import (
    blocked_array,
    blocked_bias,
    from_blocked,
    plain_array,
    to_blocked,
)
from intarsia.native.te.operators.blocked_pooling import blocked_global_pool, blocked_max_pool
from intarsia.native.te.operators.blocked_transposed_convolution import (
    blocked_transposed_convolution,
    pack_transposed_weight,
)
from intarsia.native.te.operators.convolution import add_channel_bias
from intarsia.native.te.operators.narrow_transposed_convolution import (
    pack_weight_of_pixel,
    pack_weight_to_few,
    transposed_convolution_of_pixel,
    transposed_convolution_to_few,
)
from intarsia.native.te.operators.upsampling import Upsampling
from intarsia.native.te.operators.windows import Window
from intarsia.native.tir import default_tir
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.support.aligned_memory import aligned_array
from intarsia.target import Target

ENGINES = ("onnxruntime", "openvino")
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Case:
    """An operator on a square image."""

    network: str
    operator: str
    channels: int
    size: int
    made: int
    taps: int
    stride: int = 1
    pad: int = 0
    groups: int = 1

    @property
    def name(self) -> str:
        """For the table."""
        kind = "depthwise" if self.groups == self.channels > 1 else self.operator
        groups = f" in {self.groups} groups" if 1 < self.groups < self.channels else ""
        stride = f"/{self.stride}" if self.stride > 1 else ""
        taps = f"{self.taps}x{self.taps}{stride}"
        return f"{self.network} {kind} {taps} {self.channels}->{self.made} @{self.size}{groups}"

    @property
    def window(self) -> Window:
        """Along both dimensions."""
        count = (self.size + 2 * self.pad - self.taps) // self.stride + 1
        return Window(self.size, count, self.taps, self.stride, 1, self.pad, self.pad)

    @property
    def dimension(self) -> Upsampling:
        """As `window`, of a transposed convolution."""
        count = (self.size - 1) * self.stride + self.taps - 2 * self.pad
        return Upsampling(self.size, count, self.taps, self.stride, self.pad)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Of the weights."""
        if self.operator == "ConvTranspose":
            return (self.channels, self.made, self.taps, self.taps)
        return (self.made, self.channels // self.groups, self.taps, self.taps)

    @property
    def is_plain(self) -> bool:
        """Whether its kernel reads no blocks."""
        return self.channels <= 4 or (self.operator == "ConvTranspose" and self.size == 1)

    @property
    def makes_plain(self) -> bool:
        """Whether its kernel writes no blocks."""
        return self.operator == "ConvTranspose" and self.made <= 4

    @property
    def operations(self) -> int:
        """Products and sums, or elements that are compared."""
        if self.operator == "ConvTranspose":
            return 2 * self.made * self.channels * self.size**2 * self.taps**2
        pairs = self.made * self.window.count**2 * self.taps**2
        return 2 * pairs * self.channels // self.groups if self.operator == "Conv" else pairs

    def module(self, weight: Array, bias: Array) -> IRModule:
        """The program for the engines."""
        x = Var("x", checked_type=TensorType((1, self.channels, self.size, self.size), DType.FLOAT32))
        window: dict[str, Any] = {"strides": (self.stride,) * 2, "pads": (self.pad,) * 4}
        match self.operator:
            case "Conv":
                made = call("Conv", x, Constant(weight), Constant(bias), group=self.groups, **window)
            case "ConvTranspose":
                made = call("ConvTranspose", x, Constant(weight), Constant(bias), **window)
            case "MaxPool":
                made = call("MaxPool", x, kernel_shape=(self.taps,) * 2, **window)
            case _:
                made = call(self.operator, x)
        return IRModule.from_expr(Function((x,), made))


def _resnet() -> list[Case]:
    found = [Case("ResNet-50", "Conv", 3, 224, 64, 7, 2, 3)]
    for width, size, before in ((64, 56, 64), (128, 28, 256), (256, 14, 512), (512, 7, 1024)):
        if before > width:
            found.append(Case("ResNet-50", "Conv", before, size * 2, before * 2, 1, 2))
            found.append(Case("ResNet-50", "Conv", width, size * 2, width, 3, 2, 1))
        found.append(Case("ResNet-50", "Conv", width * 4, size, width, 1))
        found.append(Case("ResNet-50", "Conv", width, size, width, 3, 1, 1))
        found.append(Case("ResNet-50", "Conv", width, size, width * 4, 1))
    return found


_DEPTHWISE = (
    *((32, 112, 1), (96, 112, 2), (144, 56, 1), (144, 56, 2)),
    *((192, 28, 1), (384, 14, 1), (576, 14, 2), (960, 7, 1)),
)
CASES = (
    *_resnet(),
    Case("ResNeXt-50", "Conv", 128, 56, 128, 3, 1, 1, 32),
    Case("ResNeXt-50", "Conv", 512, 14, 512, 3, 1, 1, 32),
    *(
        Case("MobileNetV2", "Conv", channels, size, channels, 3, stride, 1, channels)
        for channels, size, stride in _DEPTHWISE
    ),
    Case("MobileNetV2", "Conv", 96, 14, 576, 1),
    Case("MobileNetV2", "Conv", 320, 7, 1280, 1),
    Case("SqueezeNet", "Conv", 3, 224, 64, 3, 2),
    Case("SqueezeNet", "Conv", 16, 55, 64, 3, 1, 1),
    Case("SqueezeNet", "Conv", 128, 55, 16, 1),
    Case("SqueezeNet", "Conv", 32, 27, 128, 3, 1, 1),
    Case("SqueezeNet", "Conv", 64, 13, 256, 3, 1, 1),
    Case("SqueezeNet", "Conv", 512, 13, 1000, 1),
    Case("DCGAN", "ConvTranspose", 100, 1, 512, 4),
    Case("DCGAN", "ConvTranspose", 512, 4, 256, 4, 2, 1),
    Case("DCGAN", "ConvTranspose", 256, 8, 128, 4, 2, 1),
    Case("DCGAN", "ConvTranspose", 128, 16, 64, 4, 2, 1),
    Case("DCGAN", "ConvTranspose", 64, 32, 3, 4, 2, 1),
    Case("ResNet-50", "MaxPool", 64, 112, 64, 3, 2, 1),
    Case("ResNet-50", "GlobalAveragePool", 2048, 7, 2048, 7),
)


@dataclass(frozen=True)
class Kernels:
    """A case compiled.

    Attributes:
        own: The kernel alone.
        with_layouts: With conversions.
        seconds: From the schedule to machine code.
        result: What the kernel has computed, as NCHW.
    """

    own: CallTable
    with_layouts: CallTable
    seconds: float
    result: Callable[[], Array]


def native(case: Case, x: Array, weight: Array, bias: Array, isa: Isa, threads: int) -> Kernels:
    """The kernels of a case, on arrays that begin where cache lines do."""
    lanes = isa.vector_bytes // 4
    given = x if case.is_plain else blocked_array(x, lanes)
    placeholder = te.placeholder(given.shape, name="x")
    result, constants = declared(case, placeholder, weight, bias, lanes)
    dag = ComputeDAG((placeholder, *constants, result))
    began = time.process_time()
    function = _compiled(scheduled(dag, isa, threads), isa)
    seconds = time.process_time() - began
    held = {tensor: aligned_array(array) for tensor, array in constants.items()}
    held[placeholder] = aligned_array(given)
    output = aligned_array(np.zeros(result.shape, np.float32))
    own = KernelCall(function, (*(held[tensor] for tensor in dag.placeholders), output))
    calls = [own]
    if not case.is_plain:
        plain = te.placeholder(x.shape, name="plain")
        entry_dag = ComputeDAG((plain, to_blocked(plain, lanes, "blocked")))
        entry = _compiled(scheduled(entry_dag, isa, threads), isa)
        calls.insert(0, KernelCall(entry, (aligned_array(x), held[placeholder])))
    if not case.makes_plain:
        blocked = te.placeholder(result.shape, name="blocked")
        left = from_blocked(blocked, case.made, "plain")
        leave = _compiled(scheduled(ComputeDAG((blocked, left)), isa, threads), isa)
        calls.append(KernelCall(leave, (output, aligned_array(np.zeros(left.shape, np.float32)))))
    return Kernels(
        CallTable((own,)),
        CallTable(tuple(calls)),
        seconds,
        lambda: output if case.makes_plain else plain_array(output, case.made),
    )


def dag_of(case: Case, isa: Isa) -> ComputeDAG:
    """What a kernel computes in the middle of a region."""
    lanes = isa.vector_bytes // 4
    x, weight, bias = arrays_of(case)
    placeholder = te.placeholder((x if case.is_plain else blocked_array(x, lanes)).shape, name="x")
    result, constants = declared(case, placeholder, weight, bias, lanes)
    return ComputeDAG((placeholder, *constants, result))


def arrays_of(case: Case) -> tuple[Array, Array, Array]:
    """Input, weights and bias, the same each time."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((1, case.channels, case.size, case.size)).astype(np.float32)
    weight = generator.standard_normal(case.weight_shape).astype(np.float32)
    return x, weight, generator.standard_normal(case.made).astype(np.float32)


def declared(
    case: Case, x: te.Tensor, weight: Array, bias: Array, lanes: int
) -> tuple[te.Tensor, dict[te.Tensor, Array]]:
    windows = (case.window, case.window)
    if case.operator == "MaxPool":
        return blocked_max_pool(x, windows, "y"), {}
    if case.operator == "GlobalAveragePool":
        return blocked_global_pool(x, "y"), {}
    if case.operator == "ConvTranspose":
        return _transposed(case, x, weight, bias, lanes)
    if case.groups == case.channels:
        packed = pack_depthwise_weight(weight, lanes)
        w = te.placeholder(packed.shape, name="w", attrs={"constant": 1})
        conv = depthwise_convolution(x, w, windows, "conv")
    elif case.is_plain:
        packed = pack_weight_of_plain(weight, lanes)
        w = te.placeholder(packed.shape, name="w", attrs={"constant": 1})
        conv = convolution_of_plain(x, w, windows, "conv")
    else:
        packed = pack_weight(weight, lanes, lanes, case.groups)
        w = te.placeholder(packed.shape, name="w", attrs={"constant": 1})
        reads = blocks_of_groups(case.channels, case.made, case.groups, lanes, lanes)
        assert reads is not None, "the cases fit"
        conv = blocked_convolution(x, w, windows, "conv", reads)
    blocks = blocked_array(bias, lanes, axis=0)
    b = te.placeholder(blocks.shape, name="b", attrs={"constant": 1})
    return blocked_bias(conv, b, "y"), {w: packed, b: blocks}


def _transposed(
    case: Case, x: te.Tensor, weight: Array, bias: Array, lanes: int
) -> tuple[te.Tensor, dict[te.Tensor, Array]]:
    dimensions = (case.dimension, case.dimension)
    if case.makes_plain:
        packed = pack_weight_to_few(weight, lanes, lanes)
        w, b = te.placeholder(packed.shape, name="w"), te.placeholder(bias.shape, name="b")
        few = transposed_convolution_to_few(x, w, case.made, dimensions, "conv")
        return add_channel_bias(few, b, "y"), {w: packed, b: bias}
    if case.is_plain:
        packed = pack_weight_of_pixel(weight, dimensions, lanes)
        w = te.placeholder(packed.shape, name="w")
        conv = transposed_convolution_of_pixel(x, w, "conv")
    else:
        packed = pack_transposed_weight(weight, dimensions, lanes, lanes)
        w = te.placeholder(packed.shape, name="w")
        conv = blocked_transposed_convolution(x, w, dimensions, "conv")
    blocks = blocked_array(bias, lanes, axis=0)
    b = te.placeholder(blocks.shape, name="b")
    return blocked_bias(conv, b, "y"), {w: packed, b: blocks}


def _compiled(dag: ScheduledDag, isa: Isa) -> NativeFunction:
    module = default_tir(isa.vector_bytes, isa.vector_registers)(
        IRModule({GlobalVar("kernel"): dag.lowered()})
    )
    return compile_kernel(module.prim_func("kernel"), isa).load()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", default="", help="rows whose name has this text")
    options = parser.parse_args()
    isa, rows = Isa.host(), []
    with ThreadPool(options.threads) as pool:
        most = measured_peak(isa, options.threads)
        print(f"peak {most / 1e9:.0f} Gop/s, {options.threads} threads, {isa.vector_bytes} bytes a vector")
        for case in CASES:
            if options.only in case.name:
                rows.append(_row(case, isa, options.threads, options.seconds, pool, most))
                print(_text(rows[-1]), flush=True)
    for key in ("ratio", "ratio_with_layouts"):
        values = [row[key] for row in rows]
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"{key}: geometric mean {mean:.2f}, least {min(values):.2f}")
    print(f"compiling: median {sorted(row['compile_ms'] for row in rows)[len(rows) // 2]:.0f} ms")


def _row(case: Case, isa: Isa, threads: int, seconds: float, pool: ThreadPool, most: float) -> dict[str, Any]:
    x, weight, bias = arrays_of(case)
    kernels = native(case, x, weight, bias, isa, threads)
    module = case.module(weight, bias)
    engines = {
        name: build(partition_whole(module, Target.for_toolchain(name, threads=threads))) for name in ENGINES
    }
    calls: dict[str, Callable[[], object]] = {
        name: partial(each.run_flat, x) for name, each in engines.items()
    }
    calls["native"] = partial(kernels.own.run, pool)
    calls["native +layouts"] = partial(kernels.with_layouts.run, pool)
    policy = TimingPolicy(max_seconds=seconds, repeats=20, min_repeat_seconds=2e-3)
    timings = time_interleaved(calls, policy).timings
    taken = {name: each.median for name, each in timings.items()}
    expected = np.asarray(engines["onnxruntime"].run_flat(x)[0])
    error = float(np.abs(kernels.result() - expected).max() / np.abs(expected).max())
    for exe in engines.values():
        exe.close()
    best = min(taken[name] for name in ENGINES)
    return {
        "case": case.name,
        "us": {name: value * 1e6 for name, value in taken.items()},
        "percent_of_peak": 100 * case.operations / taken["native"] / most,
        "ratio": best / taken["native"],
        "ratio_with_layouts": best / taken["native +layouts"],
        "compile_ms": kernels.seconds * 1e3,
        "error": error,
    }


def _text(row: dict[str, Any]) -> str:
    times = " ".join(f"{name} {value:.0f}" for name, value in row["us"].items())
    return (
        f"{row['case']} | us: {times} | {row['percent_of_peak']:.0f} % of peak | ratio {row['ratio']:.2f}, "
        f"with layouts {row['ratio_with_layouts']:.2f} | compiled in {row['compile_ms']:.0f} ms | "
        f"error {row['error']:.1e}"
    )


if __name__ == "__main__":
    main()
