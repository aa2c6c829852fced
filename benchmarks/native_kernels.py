"""Native kernels by their default schedules against NumPy, ONNX Runtime and OpenVINO, on one thread.

Usage: python benchmarks/native_kernels.py [--rounds 40] [--markdown]

All contenders take turns in one process; times are medians, and the best time beside them, as other work on
the machine disturbs the median more. The peak is that of multiply-add instructions without any memory,
timed in the same turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from intarsia.ir import Constant, DType, GlobalVar, IRModule, TensorType, Var
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.llvm.array_parameter import ArrayParameter
from intarsia.native.llvm.codegen import generate_object_code
from intarsia.native.llvm.compile_kernel import compile_kernel
from intarsia.native.llvm.isa import Isa
from intarsia.native.llvm.native_function import NativeFunction
from intarsia.native.schedule import scheduled
from intarsia.native.te.operators import compute, compute_call_of
from intarsia.native.tir import default_tir
from intarsia.op import call

Array = npt.NDArray[np.float32]
Run = Callable[[], object]

SQUARES = (256, 512, 1024, 2048)
SKINNY = ((1, 3072, 768), (1, 768, 3072), (16, 3072, 768), (64, 768, 768), (128, 768, 768), (128, 3072, 768))
NUMPY_THREADS = "OPENBLAS_NUM_THREADS"
PEAK_STEPS, PEAK_CHAINS = 20000, 12


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one contender in each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """What stands in tables."""
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        """The least disturbed round."""
        return min(self.seconds)


def in_turns(runs: Mapping[str, Run], rounds: int, slice_seconds: float = 0.004) -> dict[str, Times]:
    """The times of one call of each, for a slice of time in each round."""
    counts = {}
    for name, run in runs.items():
        run()
        begin = time.perf_counter()
        run()
        counts[name] = max(1, int(slice_seconds / (time.perf_counter() - begin)))
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.perf_counter()
            for _ in range(counts[name]):
                run()
            found[name].append((time.perf_counter() - begin) / counts[name])
    return {name: Times(tuple(each)) for name, each in found.items()}


def compiled(dag: ComputeDAG, isa: Isa, inputs: Mapping[str, Array]) -> tuple[Run, Array, float]:
    """A call of the kernel, where its result will be, and the seconds from DAG to callable."""
    begin = time.perf_counter()
    found = scheduled(dag, isa, 1)
    pipeline = default_tir(isa.vector_bytes, isa.vector_registers)
    function = pipeline(IRModule({GlobalVar("f"): found.lowered()})).prim_func("f")
    kernel = compile_kernel(function, isa).load()
    seconds = time.perf_counter() - begin
    packed = {each.tensor_name: each.pack(inputs[each.tensor_name]) for each in found.packings}
    given = [{**inputs, **packed}[tensor.buffer.name] for tensor in found.dag.placeholders]
    result = np.zeros(found.dag.outputs[0].shape, np.float32)
    return (lambda: kernel(*given, result)), result, seconds


def peak_run(isa: Isa) -> tuple[Run, float]:
    """Independent chains of multiply-adds, and how many operations of numbers they are."""
    lanes = isa.vector_bytes // 4
    kind = f"<{lanes} x float>"
    chains = range(PEAK_CHAINS)
    half, one = (f"splat (float {value})" for value in ("0x3FE0000000000000", "0x3FF0000000000000"))
    phis = "\n".join(f"  %a{n} = phi {kind} [ {one}, %entry ], [ %c{n}, %loop ]" for n in chains)
    steps = "\n".join(
        f"  %b{n} = fmul contract {kind} %a{n}, {half}\n  %c{n} = fadd contract {kind} %b{n}, {one}"
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


def product_row(m: int, n: int, k: int, isa: Isa, rounds: int) -> tuple[str, ...]:
    """A product with a constant right matrix against NumPy."""
    random = np.random.default_rng(0)
    left = random.standard_normal((m, k)).astype(np.float32)
    right = random.standard_normal((k, n)).astype(np.float32)
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B", attrs={"constant": 1})
    axis = te.reduce_axis(k, "k")
    free = {"layout_free_placeholders": ("B",)}
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C", attrs=free)
    native, result, seconds = compiled(ComputeDAG((a, b, c)), isa, {"A": left, "B": right})
    expected = np.zeros_like(result)
    peak, operations = peak_run(isa)
    runs = {"native": native, "numpy": lambda: np.matmul(left, right, out=expected), "peak": peak}
    times = in_turns(runs, rounds)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3)
    flop = 2.0 * m * n * k
    best = operations / times["peak"].best
    return (
        f"{m}x{n}x{k}",
        f"{flop / times['native'].best / 1e9:.0f}",
        f"{100 * flop / times['native'].best / best:.0f} %",
        f"{times['numpy'].median / times['native'].median:.2f}",
        f"{times['numpy'].best / times['native'].best:.2f}",
        f"{1e3 * seconds:.0f}",
    )


@dataclass(frozen=True, slots=True)
class OperatorCase:
    """One operator on one activation and constants."""

    name: str
    shape: tuple[int, ...]
    constants: tuple[Array, ...] = ()


_ONES = np.ones(768, np.float32)
OPERATORS = (
    OperatorCase("Softmax", (12, 128, 128)),
    OperatorCase("LayerNormalization", (128, 768), (_ONES, _ONES)),
    OperatorCase("Gelu", (128, 3072)),
)


def engines(case: OperatorCase, x: Array, result: Array) -> dict[str, Run]:
    """Calls of the same operator by other engines, on one thread, without copies where they allow it."""
    import onnxruntime
    import openvino

    names = [f"w{place}" for place in range(len(case.constants))]
    typed = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, case.shape, doc_string="") for name in "xy"
    ]
    weights = [numpy_helper.from_array(each, name) for each, name in zip(case.constants, names, strict=True)]
    graph = helper.make_graph(
        [helper.make_node(case.name, ["x", *names], ["y"])], "g", typed[:1], typed[1:], weights
    )
    model: onnx.ModelProto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10
    )
    data = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu", 0, np.float32, case.shape, result.ctypes.data)
    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": 1}
    request = core.compile_model(core.read_model(data), "CPU", settings).create_infer_request()
    request.set_input_tensor(openvino.Tensor(x, shared_memory=True))
    return {"onnxruntime": lambda: session.run_with_iobinding(binding), "openvino": request.infer}


def operator_row(case: OperatorCase, isa: Isa, rounds: int) -> tuple[str, ...]:
    """An operator on rows or elements against other engines."""
    x = np.random.default_rng(0).standard_normal(case.shape).astype(np.float32)
    var = Var("x0", checked_type=TensorType(case.shape, DType.FLOAT32))
    typed = call(case.name, var, *map(Constant, case.constants))
    dag = ComputeDAG(compute(compute_call_of(typed, "t")))
    inputs = {"t.x0": x, **{f"t.x{n}": each for n, each in enumerate(case.constants, 1)}}
    native, result, seconds = compiled(dag, isa, inputs)
    expected = np.zeros_like(result)
    times = in_turns({"native": native, **engines(case, x, expected)}, rounds)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    ratios = (
        f"{times[name].median / times['native'].median:.2f} ({times[name].best / times['native'].best:.2f})"
        for name in ("onnxruntime", "openvino")
    )
    shape = "x".join(map(str, case.shape))
    return (f"{case.name} {shape}", f"{1e6 * times['native'].median:.0f}", *ratios, f"{1e3 * seconds:.0f}")


PRODUCTS_HEADER = ("m x n x k", "GFLOP/s", "of peak", "numpy / native", "of the best times", "compile ms")
OPERATORS_HEADER = (
    *("operator", "native us", "onnxruntime / native (best)", "openvino / native (best)", "compile ms"),
)


def shown(header: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> str:
    """A table, one row a line."""
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
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    if os.environ.get(NUMPY_THREADS) != "1":  # NumPy's library reads it when it is loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, NUMPY_THREADS: "1"})
    isa = Isa.host()
    sizes = (*((n, n, n) for n in SQUARES), *SKINNY)
    products = [product_row(*size, isa, given.rounds) for size in sizes]
    operators = [operator_row(case, isa, given.rounds) for case in OPERATORS]
    print(shown(PRODUCTS_HEADER, products, given.markdown))
    print()
    print(shown(OPERATORS_HEADER, operators, given.markdown))


if __name__ == "__main__":
    main()
