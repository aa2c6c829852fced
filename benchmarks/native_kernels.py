"""Operators on rows and elements by native kernels with default schedules, against ONNX Runtime and OpenVINO.

Usage: python -m benchmarks.native_kernels [--rounds 20] [--threads 1] [--markdown]

All contenders are measured interleaved in one process. Times are medians; ratios of the best times follow in
brackets, because other work on the machine disturbs medians more. The other benchmarks of native kernels use
the functions of this module, such as the peak: that of multiply-adds in registers, without memory accesses.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from intarsia.ir import Constant, DType, GlobalVar, IRModule, TensorType, Var
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.array_parameter import ArrayParameter
from intarsia.native.execution.call_table import CallTable, KernelCall
from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import generate_object_code
from intarsia.native.schedule import ScheduledDag, scheduled
from intarsia.native.te.operators import compute, compute_call_of
from intarsia.native.tir import default_tir
from intarsia.op import call
from intarsia.support.aligned_memory import aligned_array

Array = npt.NDArray[np.float32]
Run = Callable[[], object]

PEAK_STEPS, PEAK_CHAINS = 20000, 12
"""Iterations of the peak loop, and independent chains of multiply-adds in it.

Latency times throughput of FMA is 8 to 10 on x86-64 cores with two FMA ports, so that 12 chains fill them;
more than 12 would spill with 16 vector registers.
"""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one contender in each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median of the rounds, which tables show."""
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        """Time of the least disturbed round."""
        return min(self.seconds)


QUIET_SECONDS, WINDOW_SECONDS = 0.05, 0.01
"""Pause before a contender with several threads, and length of its window of time, in seconds.

Idle threads of OpenBLAS spin for about 30 ms after a call.
"""


def time_interleaved_runs(runs: Mapping[str, Run], rounds: int, threads: int) -> dict[str, Times]:
    """Return the times of one call of each contender, the mean over a window of time in each round.

    With several threads a window begins after a pause, in which the threads of other contenders stop
    spinning, and after uncounted calls, which wake the contender's own threads.
    """
    counts = {}
    for name, run in runs.items():
        run()
        begin = time.perf_counter()
        run()
        counts[name] = max(1, int(WINDOW_SECONDS / (time.perf_counter() - begin)))
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            if threads > 1:
                time.sleep(QUIET_SECONDS)
                _time_calls(run, 1 + counts[name] // 4)
            seconds[name].append(_time_calls(run, counts[name]) / counts[name])
    return {name: Times(tuple(rounds_of_run)) for name, rounds_of_run in seconds.items()}


def _time_calls(run: Run, count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        run()
    return time.perf_counter() - begin


def compile_dag(
    dag: ComputeDAG, isa: Isa, inputs: Mapping[str, Array], threads: int = 1
) -> tuple[Run, Array, float]:
    """Compile a DAG, and return a call of the kernel, its result array, and the seconds of compiling."""
    begin = time.perf_counter()
    chosen = scheduled(dag, isa, threads)
    kernel = load_scheduled(chosen, isa)
    seconds = time.perf_counter() - begin
    return *bind_call(chosen, kernel, inputs, threads), seconds


def load_scheduled(chosen: ScheduledDag, isa: Isa) -> NativeFunction:
    """Compile and load the kernel of a schedule."""
    pipeline = default_tir(isa.vector_bytes, isa.vector_registers)
    function = pipeline(IRModule({GlobalVar("f"): chosen.lowered()})).prim_func("f")
    return compile_kernel(function, isa).load()


def bind_call(
    chosen: ScheduledDag, kernel: NativeFunction, inputs: Mapping[str, Array], threads: int
) -> tuple[Run, Array]:
    """Pack the constants of a kernel, and return a call of it on aligned arrays with its result array."""
    packed = {packing.tensor_name: packing.pack(inputs[packing.tensor_name]) for packing in chosen.packings}
    contents = {**inputs, **packed}
    arguments = [aligned_array(contents[tensor.buffer.name]) for tensor in chosen.dag.placeholders]
    result = aligned_array(np.zeros(chosen.dag.outputs[0].shape, np.float32))
    pool, table = ThreadPool(threads), CallTable((KernelCall(kernel, (*arguments, result)),))
    return (lambda: table.run(pool)), result


def peak_run(isa: Isa) -> tuple[Run, float]:
    """Return a call that runs independent chains of multiply-adds, and the operations of one call."""
    lanes = isa.vector_bytes // 4
    kind = f"<{lanes} x float>"
    chains = range(PEAK_CHAINS)
    # a = a * 0.5 + 1 converges to 2: neither overflow nor denormals slow the loop down. The chains are
    # stored at the end, so that LLVM does not remove them; `contract` lets it fuse fmul and fadd into FMA.
    half, unit = (f"splat (float {value})" for value in ("0x3FE0000000000000", "0x3FF0000000000000"))
    phis = "\n".join(f"  %a{n} = phi {kind} [ {unit}, %entry ], [ %c{n}, %loop ]" for n in chains)
    steps = "\n".join(
        f"  %b{n} = fmul contract {kind} %a{n}, {half}\n  %c{n} = fadd contract {kind} %b{n}, {unit}"
        for n in chains
    )
    stores = "\n".join(
        f"  %p{n} = getelementptr i8, ptr %out, i64 {n * isa.vector_bytes}\n"
        f"  store {kind} %c{n}, ptr %p{n}, align 4"
        for n in chains
    )
    text = f"""define void @kernel(ptr %args, ptr %runtime) {{
entry:
  %out = load ptr, ptr %args
  br label %loop
loop:
{phis}
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{steps}
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, {PEAK_STEPS}
  br i1 %done, label %exit, label %loop
exit:
{stores}
  ret void
}}
"""
    shape = (PEAK_CHAINS * lanes,)
    parameter = ArrayParameter("out", shape, np.dtype(np.float32), is_written=True)
    kernel = NativeFunction.load(generate_object_code(text, isa), "kernel", (parameter,))
    out = np.zeros(shape, np.float32)
    return (lambda: kernel(out)), 2.0 * PEAK_STEPS * PEAK_CHAINS * lanes


@dataclass(frozen=True, slots=True)
class OperatorCase:
    """An operator on one activation and constants, with attributes."""

    name: str
    shape: tuple[int, ...]
    constants: tuple[Array, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Name in the table."""
        window = "x".join(map(str, self.attrs.get("kernel_shape", ())))
        stride = f"/{self.attrs['strides'][0]}" if "strides" in self.attrs else ""
        form = self.attrs.get("approximate", "")
        return " ".join(filter(None, (self.name, form, window + stride, "x".join(map(str, self.shape)))))


def _layer_norm(rows: int, width: int) -> OperatorCase:
    ones = np.ones(width, np.float32)
    return OperatorCase("LayerNormalization", (rows, width), (ones, ones))


def _pool(name: str, shape: tuple[int, ...], taps: int, stride: int, pad: int = 0) -> OperatorCase:
    window = {"kernel_shape": (taps, taps), "strides": (stride, stride), "pads": (pad,) * 4}
    return OperatorCase(name, shape, attrs=window)


SOFTMAX_SHAPES = ((12, 128, 128), (12, 512, 512), (12, 197, 197), (96, 49, 49), (64, 1000), (4096, 10))
OPERATORS = (
    *(OperatorCase("Softmax", shape) for shape in SOFTMAX_SHAPES),
    OperatorCase("LogSoftmax", (64, 1000)),
    *(_layer_norm(rows, width) for rows, width in ((128, 768), (512, 1024), (3136, 96))),
    *(OperatorCase(name, (128, 3072)) for name in ("Gelu", "Erf", "Tanh", "Sigmoid", "Exp")),
    OperatorCase("Gelu", (128, 3072), attrs={"approximate": "tanh"}),
    _pool("MaxPool", (1, 64, 112, 112), 3, 2, 1),
    _pool("MaxPool", (1, 64, 54, 54), 3, 2),
    _pool("MaxPool", (1, 64, 56, 56), 2, 2),
    _pool("AveragePool", (1, 64, 56, 56), 2, 2),
    _pool("AveragePool", (1, 64, 56, 56), 3, 1, 1),
    OperatorCase("GlobalAveragePool", (1, 2048, 7, 7)),
    OperatorCase("GlobalAveragePool", (1, 64, 112, 112)),
    OperatorCase("GlobalMaxPool", (1, 512, 14, 14)),
)


def compile_engines(case: OperatorCase, x: Array, result: Array, threads: int) -> dict[str, Run]:
    """Compile an operator with each engine, and return a call of each."""
    weights = {f"w{index}": constant for index, constant in enumerate(case.constants)}
    return compile_engine_calls(case.name, case.attrs, {"x": x}, weights, result, threads)


def compile_engine_calls(
    operator: str,
    attrs: Mapping[str, Any],
    inputs: Mapping[str, Array],
    weights: Mapping[str, Array],
    result: Array,
    threads: int,
) -> dict[str, Run]:
    """Compile an operator with each engine, and return a call of each.

    Engines compute in float32 and are bound to the arrays, without copies. Spinning is off, so that threads
    of one contender do not slow down the next one.
    """
    import onnxruntime
    import openvino

    typed = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)
        for name, array in (*inputs.items(), ("y", result))
    ]
    node = helper.make_node(operator, [*inputs, *weights], ["y"], **attrs)
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph([node], "g", typed[:-1], typed[-1:], constants)
    opset = [helper.make_opsetid("", 20)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opset, ir_version=10)
    data = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    binding, core = session.io_binding(), openvino.Core()
    binding.bind_output("y", "cpu", 0, np.float32, result.shape, result.ctypes.data)
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
    }  # the default is bfloat16 where the CPU has it
    request = core.compile_model(core.read_model(data), "CPU", settings).create_infer_request()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
        request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
    return {"onnxruntime": lambda: session.run_with_iobinding(binding), "openvino": request.infer}


def measure_operator(case: OperatorCase, isa: Isa, rounds: int, threads: int) -> tuple[str, ...]:
    """Time an operator with native and with the engines, and return the row of the table."""
    x = np.random.default_rng(0).standard_normal(case.shape).astype(np.float32)
    var = Var("x0", checked_type=TensorType(case.shape, DType.FLOAT32))
    typed = call(case.name, var, *map(Constant, case.constants), **case.attrs)
    dag = ComputeDAG(compute(compute_call_of(typed, "t")))
    inputs = {"t.x0": x, **{f"t.x{index}": constant for index, constant in enumerate(case.constants, 1)}}
    native, result, seconds = compile_dag(dag, isa, inputs, threads)
    expected = np.zeros_like(result)
    times = time_interleaved_runs(
        {"native": native, **compile_engines(case, x, expected, threads)}, rounds, threads
    )
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    ratios = (
        f"{times[name].median / times['native'].median:.2f} ({times[name].best / times['native'].best:.2f})"
        for name in ("onnxruntime", "openvino")
    )
    return (case.title, f"{1e6 * times['native'].median:.0f}", *ratios, f"{1e3 * seconds:.0f}")


OPERATORS_HEADER = (
    *("operator", "native us", "onnxruntime / native (best)", "openvino / native (best)", "compile ms"),
)


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> str:
    """Return a table as text, one row a line."""
    if markdown:
        lines = [header, ["---"] * len(header), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in (header, *rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    isa = Isa.host()
    operators = [measure_operator(case, isa, given.rounds, given.threads) for case in OPERATORS]
    print(format_table(OPERATORS_HEADER, operators, given.markdown))


if __name__ == "__main__":
    main()
