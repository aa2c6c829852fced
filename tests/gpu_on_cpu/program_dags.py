"""The DAGs of the kernels of a program, as they are planned for a GPU."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tests.gpu_on_cpu.cpu_kernels import Array

from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.native.dag import ComputeDAG
from intarsia.passes import InferType
from intarsia.target import Target
from intarsia.toolchain.native.gpu.compile_program import plan_for_gpu
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.onnx_compile import onnx_kernel_source

_OPSET = 26


def dags_of(program: str | IRModule) -> list[ComputeDAG]:
    """The DAG of each kernel of a program, in order."""
    mod = InferType()(parse_module(program)) if isinstance(program, str) else program
    target = Target("cpu -toolchain=native -threads=1")
    source = onnx_kernel_source(Native(), mod["main"], target, mod, _OPSET)
    return [kernel.dag for kernel in plan_for_gpu(source).plan.kernels]


def normal_numbers(dag: ComputeDAG, seed: int = 0) -> dict[str, Array]:
    """Random numbers for each placeholder, normally distributed where they are floats."""
    rng = np.random.default_rng(seed)
    return {
        tensor.buffer.name: rng.standard_normal(tensor.shape).astype(tensor.dtype.numpy)
        if tensor.dtype.is_float
        else rng.integers(0, 2, tensor.shape).astype(tensor.dtype.numpy)
        for tensor in dag.placeholders
    }


def relative_error(results: Mapping[str, Array], expected: Mapping[str, Array]) -> float:
    """The greatest norm of a difference, relative to the norm of the result; NaN equals NaN."""
    errors = []
    for name, exact in expected.items():
        assert (np.isnan(results[name]) == np.isnan(exact)).all()
        wide = np.nan_to_num(exact.astype(np.float64))
        difference = np.nan_to_num(results[name].astype(np.float64)) - wide
        errors.append(float(np.linalg.norm(difference) / max(float(np.linalg.norm(wide)), 1e-30)))
    return max(errors)
