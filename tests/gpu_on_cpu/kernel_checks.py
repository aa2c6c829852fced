"""Comparing GPU kernels with loops as declared: in the interpreter, as loops, and as LLVM IR on this CPU."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tests.gpu_on_cpu.cpu_kernels import Array, run_on_cpu
from tests.tir_checks import in_module

from intarsia.ir import PrimFunc
from intarsia.ir.verify import verify
from intarsia.native.dag import ComputeDAG
from intarsia.native.lowering import lower_naive
from intarsia.native.tir import SplitAtBarriers, interpret

Arrays = Mapping[str, Array]


def whole_numbers(dag: ComputeDAG, seed: int = 0) -> dict[str, Array]:
    """Small whole numbers for each placeholder, whose sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return {
        tensor.buffer.name: rng.integers(-3, 4, tensor.shape).astype(tensor.dtype.numpy)
        for tensor in dag.placeholders
    }


def interpreted(function: PrimFunc, inputs: Arrays) -> dict[str, Array]:
    """What a function writes in the interpreter, which reports races."""
    memory, outputs = _memory(function, inputs)
    interpret(function, memory)
    return outputs


def on_this_cpu(function: PrimFunc, inputs: Arrays, *, is_descending: bool) -> dict[str, Array]:
    """What the LLVM IR of a function's kernels writes, one coroutine for each thread."""
    memory, outputs = _memory(function, inputs)
    run_on_cpu(function, memory, is_descending=is_descending)
    return outputs


def check_kernels(dag: ComputeDAG, function: PrimFunc, seed: int = 0, *, is_compiled: bool = True) -> None:
    """Fail unless kernels write what the loops as declared write, without races, on each level of proof."""
    verify(in_module(function))
    inputs = whole_numbers(dag, seed)
    expected = interpreted(lower_naive(dag.outputs), inputs)
    split = SplitAtBarriers()(in_module(function))
    verify(split)
    assert_close(interpreted(function, inputs), expected)
    assert_close(interpreted(split.prim_func("f"), inputs), expected)
    if is_compiled:
        for is_descending in (False, True):
            assert_close(on_this_cpu(function, inputs, is_descending=is_descending), expected)


def assert_close(results: Arrays, expected: Arrays) -> None:
    assert results.keys() == expected.keys()
    for name, array in results.items():
        np.testing.assert_allclose(array, expected[name], rtol=2e-5, atol=1e-5, err_msg=name)


def _memory(function: PrimFunc, inputs: Arrays) -> tuple[dict[str, Array], dict[str, Array]]:
    names = {param.name for param in function.params}
    outputs = {
        param.name: np.full(param.shape, 77, param.dtype.numpy)
        for param in function.params
        if param.name not in inputs
    }
    return {**{name: array for name, array in inputs.items() if name in names}, **outputs}, outputs
