"""Convolutions and pools of known networks by native kernels with default schedules, and by the engines.

All are measured interleaved in one process. A native kernel is timed as it runs inside a region: blocked
tensors, packed weights, bias added. `+layouts` also converts its input from NCHW and its result to NCHW.
A ratio is the time of the faster engine, called with arrays, over that of the kernel; the percentage is of
the peak that multiply-adds in registers reach on this machine.
Usage: python -m benchmarks.native_convolutions [--threads N] [--seconds S] [--only TEXT]
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
    """An operator on a square image.

    Attributes:
        network: Network that has the operator.
        operator: ONNX name of the operator.
        channels: Input channels.
        size: Height and width of the input.
        filters: Output channels.
        taps: Height and width of the window.
        stride: Stride along both dimensions.
        pad: Padding on each side.
        groups: Number of groups.
    """

    network: str
    operator: str
    channels: int
    size: int
    filters: int
    taps: int
    stride: int = 1
    pad: int = 0
    groups: int = 1

    @property
    def name(self) -> str:
        """Name in the table."""
        kind = "depthwise" if self.groups == self.channels > 1 else self.operator
        groups = f" in {self.groups} groups" if 1 < self.groups < self.channels else ""
        stride = f"/{self.stride}" if self.stride > 1 else ""
        taps = f"{self.taps}x{self.taps}{stride}"
        return f"{self.network} {kind} {taps} {self.channels}->{self.filters} @{self.size}{groups}"

    @property
    def window(self) -> Window:
        """Window of a convolution or pool along each dimension."""
        count = (self.size + 2 * self.pad - self.taps) // self.stride + 1
        return Window(self.size, count, self.taps, self.stride, 1, self.pad, self.pad)

    @property
    def dimension(self) -> Upsampling:
        """Window of a transposed convolution along each dimension."""
        count = (self.size - 1) * self.stride + self.taps - 2 * self.pad
        return Upsampling(self.size, count, self.taps, self.stride, self.pad)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        if self.operator == "ConvTranspose":
            return (self.channels, self.filters, self.taps, self.taps)
        return (self.filters, self.channels // self.groups, self.taps, self.taps)

    @property
    def reads_plain(self) -> bool:
        """Whether the kernel reads its input in plain NCHW layout."""
        return self.channels <= 4 or (self.operator == "ConvTranspose" and self.size == 1)

    @property
    def writes_plain(self) -> bool:
        """Whether the kernel writes its result in plain NCHW layout."""
        return self.operator == "ConvTranspose" and self.filters <= 4

    @property
    def operations(self) -> int:
        """Number of multiplications and additions, or of compared elements of a pool."""
        if self.operator == "ConvTranspose":
            return 2 * self.filters * self.channels * self.size**2 * self.taps**2
        pairs = self.filters * self.window.count**2 * self.taps**2
        return 2 * pairs * self.channels // self.groups if self.operator == "Conv" else pairs

    def module(self, weight: Array, bias: Array) -> IRModule:
        """Return the program for the engines."""
        x = Var("x", checked_type=TensorType((1, self.channels, self.size, self.size), DType.FLOAT32))
        window: dict[str, Any] = {"strides": (self.stride,) * 2, "pads": (self.pad,) * 4}
        match self.operator:
            case "Conv":
                result = call("Conv", x, Constant(weight), Constant(bias), group=self.groups, **window)
            case "ConvTranspose":
                result = call("ConvTranspose", x, Constant(weight), Constant(bias), **window)
            case "MaxPool":
                result = call("MaxPool", x, kernel_shape=(self.taps,) * 2, **window)
            case _:
                result = call(self.operator, x)
        return IRModule.from_expr(Function((x,), result))


def _resnet() -> list[Case]:
    cases = [Case("ResNet-50", "Conv", 3, 224, 64, 7, 2, 3)]
    for width, size, before in ((64, 56, 64), (128, 28, 256), (256, 14, 512), (512, 7, 1024)):
        if before > width:
            cases.append(Case("ResNet-50", "Conv", before, size * 2, before * 2, 1, 2))
            cases.append(Case("ResNet-50", "Conv", width, size * 2, width, 3, 2, 1))
        cases.append(Case("ResNet-50", "Conv", width * 4, size, width, 1))
        cases.append(Case("ResNet-50", "Conv", width, size, width, 3, 1, 1))
        cases.append(Case("ResNet-50", "Conv", width, size, width * 4, 1))
    return cases


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
    """The compiled kernels of a case.

    Attributes:
        alone: Call of the kernel alone.
        with_layouts: Calls of the kernel and of the layout conversions around it.
        seconds: CPU seconds from the schedule to machine code.
        result: Function that returns the kernel's result in NCHW layout.
    """

    alone: CallTable
    with_layouts: CallTable
    seconds: float
    result: Callable[[], Array]


def compile_native(case: Case, x: Array, weight: Array, bias: Array, isa: Isa, threads: int) -> Kernels:
    """Compile the kernels of a case, bound to arrays that are aligned to cache lines."""
    lanes = isa.vector_bytes // 4
    kernel_input = x if case.reads_plain else blocked_array(x, lanes)
    placeholder = te.placeholder(kernel_input.shape, name="x")
    result, constants = declare(case, placeholder, weight, bias, lanes)
    dag = ComputeDAG((placeholder, *constants, result))
    began = time.process_time()
    function = _compile(scheduled(dag, isa, threads), isa)
    seconds = time.process_time() - began
    arrays = {tensor: aligned_array(array) for tensor, array in constants.items()}
    arrays[placeholder] = aligned_array(kernel_input)
    output = aligned_array(np.zeros(result.shape, np.float32))
    kernel_call = KernelCall(function, (*(arrays[tensor] for tensor in dag.placeholders), output))
    calls = [kernel_call]
    if not case.reads_plain:
        plain = te.placeholder(x.shape, name="plain")
        entry_dag = ComputeDAG((plain, to_blocked(plain, lanes, "blocked")))
        entry_kernel = _compile(scheduled(entry_dag, isa, threads), isa)
        calls.insert(0, KernelCall(entry_kernel, (aligned_array(x), arrays[placeholder])))
    if not case.writes_plain:
        blocked = te.placeholder(result.shape, name="blocked")
        plain_result = from_blocked(blocked, case.filters, "plain")
        exit_kernel = _compile(scheduled(ComputeDAG((blocked, plain_result)), isa, threads), isa)
        calls.append(
            KernelCall(exit_kernel, (output, aligned_array(np.zeros(plain_result.shape, np.float32))))
        )
    return Kernels(
        CallTable((kernel_call,)),
        CallTable(tuple(calls)),
        seconds,
        lambda: output if case.writes_plain else plain_array(output, case.filters),
    )


def dag_of(case: Case, isa: Isa) -> ComputeDAG:
    """Return the DAG of a kernel in the middle of a region."""
    lanes = isa.vector_bytes // 4
    x, weight, bias = arrays_of(case)
    placeholder = te.placeholder((x if case.reads_plain else blocked_array(x, lanes)).shape, name="x")
    result, constants = declare(case, placeholder, weight, bias, lanes)
    return ComputeDAG((placeholder, *constants, result))


def arrays_of(case: Case) -> tuple[Array, Array, Array]:
    """Return input, weights and bias: random, the same in each call."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((1, case.channels, case.size, case.size)).astype(np.float32)
    weight = generator.standard_normal(case.weight_shape).astype(np.float32)
    return x, weight, generator.standard_normal(case.filters).astype(np.float32)


def declare(
    case: Case, x: te.Tensor, weight: Array, bias: Array, lanes: int
) -> tuple[te.Tensor, dict[te.Tensor, Array]]:
    """Declare the result of a case, and return it with the packed contents of its constants."""
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
    elif case.reads_plain:
        packed = pack_weight_of_plain(weight, lanes)
        w = te.placeholder(packed.shape, name="w", attrs={"constant": 1})
        conv = convolution_of_plain(x, w, windows, "conv")
    else:
        packed = pack_weight(weight, lanes, lanes, case.groups)
        w = te.placeholder(packed.shape, name="w", attrs={"constant": 1})
        reads = blocks_of_groups(case.channels, case.filters, case.groups, lanes, lanes)
        assert reads is not None, "the cases fit"
        conv = blocked_convolution(x, w, windows, "conv", reads)
    blocks = blocked_array(bias, lanes, axis=0)
    b = te.placeholder(blocks.shape, name="b", attrs={"constant": 1})
    return blocked_bias(conv, b, "y"), {w: packed, b: blocks}


def _transposed(
    case: Case, x: te.Tensor, weight: Array, bias: Array, lanes: int
) -> tuple[te.Tensor, dict[te.Tensor, Array]]:
    dimensions = (case.dimension, case.dimension)
    if case.writes_plain:
        packed = pack_weight_to_few(weight, lanes, lanes)
        w, b = te.placeholder(packed.shape, name="w"), te.placeholder(bias.shape, name="b")
        few = transposed_convolution_to_few(x, w, case.filters, dimensions, "conv")
        return add_channel_bias(few, b, "y"), {w: packed, b: bias}
    if case.reads_plain:
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


def _compile(dag: ScheduledDag, isa: Isa) -> NativeFunction:
    module = default_tir(isa.vector_bytes, isa.vector_registers)(
        IRModule({GlobalVar("kernel"): dag.lowered()})
    )
    return compile_kernel(module.prim_func("kernel"), isa).load()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", default="", help="rows that have this text in their names")
    options = parser.parse_args()
    isa, rows = Isa.host(), []
    with ThreadPool(options.threads) as pool:
        peak = measured_peak(isa, options.threads)
        print(f"peak {peak / 1e9:.0f} Gop/s, {options.threads} threads, {isa.vector_bytes} bytes a vector")
        for case in CASES:
            if options.only in case.name:
                rows.append(_measure_case(case, isa, options.threads, options.seconds, pool, peak))
                print(_format_row(rows[-1]), flush=True)
    for key in ("ratio", "ratio_with_layouts"):
        values = [row[key] for row in rows]
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"{key}: geometric mean {mean:.2f}, least {min(values):.2f}")
    print(f"compiling: median {sorted(row['compile_ms'] for row in rows)[len(rows) // 2]:.0f} ms")


def _measure_case(
    case: Case, isa: Isa, threads: int, seconds: float, pool: ThreadPool, peak: float
) -> dict[str, Any]:
    x, weight, bias = arrays_of(case)
    kernels = compile_native(case, x, weight, bias, isa, threads)
    module = case.module(weight, bias)
    engines = {
        name: build(partition_whole(module, Target.for_toolchain(name, threads=threads))) for name in ENGINES
    }
    calls: dict[str, Callable[[], object]] = {
        name: partial(executable.run_flat, x) for name, executable in engines.items()
    }
    calls["native"] = partial(kernels.alone.run, pool)
    calls["native +layouts"] = partial(kernels.with_layouts.run, pool)
    policy = TimingPolicy(max_seconds=seconds, repeats=20, min_repeat_seconds=2e-3)
    timings = time_interleaved(calls, policy).timings
    medians = {name: timing.median for name, timing in timings.items()}
    expected = np.asarray(engines["onnxruntime"].run_flat(x)[0])
    error = float(np.abs(kernels.result() - expected).max() / np.abs(expected).max())
    for exe in engines.values():
        exe.close()
    best = min(medians[name] for name in ENGINES)
    return {
        "case": case.name,
        "us": {name: value * 1e6 for name, value in medians.items()},
        "percent_of_peak": 100 * case.operations / medians["native"] / peak,
        "ratio": best / medians["native"],
        "ratio_with_layouts": best / medians["native +layouts"],
        "compile_ms": kernels.seconds * 1e3,
        "error": error,
    }


def _format_row(row: dict[str, Any]) -> str:
    times = " ".join(f"{name} {value:.0f}" for name, value in row["us"].items())
    return (
        f"{row['case']} | us: {times} | {row['percent_of_peak']:.0f} % of peak | ratio {row['ratio']:.2f}, "
        f"with layouts {row['ratio_with_layouts']:.2f} | compiled in {row['compile_ms']:.0f} ms | "
        f"error {row['error']:.1e}"
    )


if __name__ == "__main__":
    main()
