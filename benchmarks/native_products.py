"""Matrix products by native kernels with default schedules, against NumPy, ONNX Runtime and OpenVINO.

Usage: python -m benchmarks.native_products [--rounds 20] [--threads 1] [--only TEXT] [--markdown]

All contenders are measured interleaved in one process. Ratios are of the best times, with those of medians in
brackets: other work on the machine disturbs the median more. `engine / native` is of the faster engine. In
the second table no matrix is constant: packing is part of the time of engines and kernels.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.native_kernels import (
    Array,
    Run,
    Times,
    compile_dag,
    compile_engine_calls,
    format_table,
    peak_run,
    time_interleaved_runs,
)

from intarsia.ir import Constant, DType, TensorType, Var
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.te.operators import compute, compute_call_of
from intarsia.op import call
from intarsia.support.aligned_memory import aligned_array

NUMPY_THREADS = "OPENBLAS_NUM_THREADS"
HEADER = ("product", "GFLOP/s", "of peak", "engine / native", "numpy / native", "compile ms")


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product.

    Attributes:
        left: Shape of the left operand, a matrix or a batch of matrices.
        right: Shape of the right operand.
        is_constant: Whether the right operand is a weight.
        is_transposed: Whether the right operand is transposed, for Gemm.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    is_constant: bool = False
    is_transposed: bool = False

    @property
    def title(self) -> str:
        """Name in the table: batch x M x N x K."""
        sizes = (*self.left[:-1], self.shape[-1], self.left[-1])
        return "x".join(map(str, sizes)) + (" transposed" if self.is_transposed else "")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (*self.left[:-1], self.right[-2] if self.is_transposed else self.right[-1])

    @property
    def operator(self) -> tuple[str, Mapping[str, Any]]:
        """ONNX name and attributes of the operator."""
        return ("Gemm", {"transB": 1}) if self.is_transposed else ("MatMul", {})


def _product(m: int, n: int, k: int, is_constant: bool, is_transposed: bool = False) -> Product:
    return Product((m, k), (n, k) if is_transposed else (k, n), is_constant, is_transposed)


CONSTANT = (
    *(_product(n, n, n, True) for n in (256, 512, 1024, 2048)),
    *(_product(m, n, k, True) for m in (1, 16, 64, 128) for n, k in ((768, 768), (3072, 768), (768, 3072))),
)
VARIABLE = (
    Product((12, 128, 64), (12, 64, 128)),
    Product((12, 128, 128), (12, 128, 64)),
    *(_product(m, 768, 768, False) for m in (16, 128)),
    _product(1024, 1024, 1024, False),
    *(_product(m, 768, 768, False, True) for m in (1, 16, 128)),
)


def compile_engines(case: Product, x: Array, w: Array, result: Array, threads: int) -> dict[str, Run]:
    """Compile a product with each engine, and return a call of each."""
    name, attrs = case.operator
    inputs, weights = ({"x": x}, {"w": w}) if case.is_constant else ({"x": x, "w": w}, {})
    return compile_engine_calls(name, attrs, inputs, weights, result, threads)


def compile_native(case: Product, x: Array, w: Array, isa: Isa, threads: int) -> tuple[Run, Array, float]:
    """Compile a product with native; see `compile_dag`."""
    left = Var("x", checked_type=TensorType(x.shape, DType.FLOAT32))
    right = Var("w", checked_type=TensorType(w.shape, DType.FLOAT32))
    name, attrs = case.operator
    typed = call(name, left, Constant(w) if case.is_constant else right, **attrs)
    dag = ComputeDAG(compute(compute_call_of(typed, "t")))
    return compile_dag(dag, isa, {"t.x0": x, "t.x1": w}, threads)


def measure_product(case: Product, isa: Isa, rounds: int, threads: int) -> tuple[str, ...]:
    """Time a product with all contenders, and return the row of the table."""
    random = np.random.default_rng(0)
    x, w = (
        aligned_array(random.standard_normal(shape).astype(np.float32)) for shape in (case.left, case.right)
    )
    run, result, seconds = compile_native(case, x, w, isa, threads)
    of_engine, expected = np.zeros_like(result), np.zeros_like(result)
    right = np.swapaxes(w, -1, -2) if case.is_transposed else w
    peak, operations = peak_run(isa)
    runs = {
        "native": run,
        **compile_engines(case, x, w, of_engine, threads),
        "numpy": lambda: np.matmul(x, right, out=expected),
        "peak": peak,
    }
    times = time_interleaved_runs(runs, rounds, threads)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(of_engine, expected, rtol=1e-3, atol=1e-3)
    speed = 2.0 * result.size * case.left[-1] / times["native"].best
    best = threads * operations / times["peak"].best
    return (
        case.title,
        f"{speed / 1e9:.0f}",
        f"{100 * speed / best:.0f} %",
        _ratio([times["onnxruntime"], times["openvino"]], times["native"]),
        _ratio([times["numpy"]], times["native"]),
        f"{1e3 * seconds:.0f}",
    )


def _ratio(others: list[Times], native: Times) -> str:
    best, median = min(times.best for times in others), min(times.median for times in others)
    return f"{best / native.best:.2f} ({median / native.median:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="products that have this text in their names")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    threads = str(given.threads)
    if os.environ.get(NUMPY_THREADS) != threads:  # OpenBLAS reads it once, when NumPy loads it
        command = [sys.executable, "-m", "benchmarks.native_products", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, NUMPY_THREADS: threads})
    isa = Isa.host()
    for cases in (CONSTANT, VARIABLE):
        chosen = [case for case in cases if given.only in case.title]
        if chosen:
            rows = [measure_product(case, isa, given.rounds, given.threads) for case in chosen]
            print(format_table(HEADER, rows, given.markdown))
            print()


if __name__ == "__main__":
    main()
