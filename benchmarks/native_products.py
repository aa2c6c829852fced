"""Products of matrices by native kernels with default schedules, against NumPy, ONNX Runtime and OpenVINO.

Usage: python -m benchmarks.native_products [--rounds 20] [--threads 1] [--only TEXT] [--markdown]

All contenders take turns in one process. Ratios are of the best times, with those of medians in brackets:
other work on the machine disturbs the median more. `engine / native` is of the faster engine. In the second
table no matrix is constant: what engines and kernels lay out anew is part of the time.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.native_kernels import Array, Run, Times, compiled, engine_calls, in_turns, peak_run, shown

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
    """One product.

    Attributes:
        left: Shape of the left matrix, or of several.
        right: Shape of the right one.
        is_constant: Whether the right one is a weight.
        is_turned: Whether the right one is given transposed, to Gemm.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    is_constant: bool = False
    is_turned: bool = False

    @property
    def title(self) -> str:
        """For the table: batch, rows, columns, products that are summed."""
        sizes = (*self.left[:-1], self.shape[-1], self.left[-1])
        return "x".join(map(str, sizes)) + (" transposed" if self.is_turned else "")

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the result."""
        return (*self.left[:-1], self.right[-2] if self.is_turned else self.right[-1])

    @property
    def operator(self) -> tuple[str, Mapping[str, Any]]:
        """Name and attributes."""
        return ("Gemm", {"transB": 1}) if self.is_turned else ("MatMul", {})


def _of(m: int, n: int, k: int, is_constant: bool, is_turned: bool = False) -> Product:
    return Product((m, k), (n, k) if is_turned else (k, n), is_constant, is_turned)


CONSTANT = (
    *(_of(n, n, n, True) for n in (256, 512, 1024, 2048)),
    *(_of(m, n, k, True) for m in (1, 16, 64, 128) for n, k in ((768, 768), (3072, 768), (768, 3072))),
)
VARIABLE = (
    Product((12, 128, 64), (12, 64, 128)),
    Product((12, 128, 128), (12, 128, 64)),
    *(_of(m, 768, 768, False) for m in (16, 128)),
    _of(1024, 1024, 1024, False),
    *(_of(m, 768, 768, False, True) for m in (1, 16, 128)),
)


def engines(case: Product, x: Array, w: Array, result: Array, threads: int) -> dict[str, Run]:
    """Calls of the same operator by the engines."""
    name, attrs = case.operator
    inputs, weights = ({"x": x}, {"w": w}) if case.is_constant else ({"x": x, "w": w}, {})
    return engine_calls(name, attrs, inputs, weights, result, threads)


def native(case: Product, x: Array, w: Array, isa: Isa, threads: int) -> tuple[Run, Array, float]:
    """As `compiled`."""
    left = Var("x", checked_type=TensorType(x.shape, DType.FLOAT32))
    right = Var("w", checked_type=TensorType(w.shape, DType.FLOAT32))
    name, attrs = case.operator
    typed = call(name, left, Constant(w) if case.is_constant else right, **attrs)
    dag = ComputeDAG(compute(compute_call_of(typed, "t")))
    return compiled(dag, isa, {"t.x0": x, "t.x1": w}, threads)


def row(case: Product, isa: Isa, rounds: int, threads: int) -> tuple[str, ...]:
    """A product by all contenders."""
    random = np.random.default_rng(0)
    x, w = (
        aligned_array(random.standard_normal(shape).astype(np.float32)) for shape in (case.left, case.right)
    )
    run, result, seconds = native(case, x, w, isa, threads)
    of_engine, expected = np.zeros_like(result), np.zeros_like(result)
    right = np.swapaxes(w, -1, -2) if case.is_turned else w
    peak, operations = peak_run(isa)
    runs = {
        "native": run,
        **engines(case, x, w, of_engine, threads),
        "numpy": lambda: np.matmul(x, right, out=expected),
        "peak": peak,
    }
    times = in_turns(runs, rounds, threads)
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


def _ratio(others: list[Times], own: Times) -> str:
    best, median = min(each.best for each in others), min(each.median for each in others)
    return f"{best / own.best:.2f} ({median / own.median:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="products with this in their name")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    threads = str(given.threads)
    if os.environ.get(NUMPY_THREADS) != threads:  # NumPy's library reads it when it is loaded
        again = [sys.executable, "-m", "benchmarks.native_products", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, NUMPY_THREADS: threads})
    isa = Isa.host()
    for cases in (CONSTANT, VARIABLE):
        chosen = [case for case in cases if given.only in case.title]
        if chosen:
            rows = [row(case, isa, given.rounds, given.threads) for case in chosen]
            print(shown(HEADER, rows, given.markdown))
            print()


if __name__ == "__main__":
    main()
