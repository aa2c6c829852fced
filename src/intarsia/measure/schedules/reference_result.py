"""Compute the expected outputs of a task's kernels, and their tolerances.

The reference is the loops as declared, compiled by LLVM: no state, no bounds, no pass on loops, on one
thread. Only the last axis is moved inside of the sums, for LLVM to vectorise. The reference shares the
compute declaration and the code generator's scalar arithmetic with the candidates, and nothing that a
schedule changes. It takes a third of a second to a second for a billion operations, once for each task.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.tolerance import tolerance_for
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.lowering import lower_naive
from intarsia.native.machine.isa import Isa
from intarsia.native.te import ComputeOp, Operation
from intarsia.support.aligned_memory import aligned_array

Array = npt.NDArray[Any]


def reference_result(dag: ComputeDAG, contents: Mapping[str, Array], isa: Isa) -> dict[str, Array]:
    """Compute the outputs of a DAG by name, in its order.

    Args:
        dag: The computation.
        contents: Contents of its placeholders by name.
        isa: Instruction set of the code.

    Raises:
        CompileError: There is no llvmlite, or it refuses the code.
    """
    function = compile_kernel(lower_naive(dag.outputs, in_rows=True), isa).load()
    outputs = {tensor.buffer.name: np.zeros(tensor.shape, tensor.dtype.numpy) for tensor in dag.outputs}
    arrays = outputs | {name: aligned_array(array) for name, array in contents.items()}
    function(*(arrays[parameter.name] for parameter in function.parameters))
    return outputs


def gate_of(dag: ComputeDAG, expected: Mapping[str, Array]) -> Gate:
    """Return the gate of a DAG's results: the reference result, with tolerances from the lengths of its sums.

    Args:
        dag: The computation.
        expected: Reference outputs by name.
    """
    names = tuple(tensor.buffer.name for tensor in dag.outputs)
    length, depth = longest_sum(dag), sums_in_a_row(dag)
    quantized = any(map(_rounds_to_integers, dag.ops))
    tolerances = tuple(tolerance_for(expected[name].dtype, length, depth, quantized) for name in names)
    return Gate.by_tolerance(names, [expected[name] for name in names], tolerances, "the loops as declared")


def longest_sum(dag: ComputeDAG) -> int:
    """Return the number of terms of the longest reduction; 1 if there is no reduction."""
    return max(1, *(_terms(op) for op in dag.ops))


def sums_in_a_row(dag: ComputeDAG) -> int:
    """Return the number of reductions on the path with the most of them, at least 1."""
    depth: dict[Operation, int] = {}
    for op in dag.ops:
        below = max((depth[tensor.op] for tensor in op.inputs), default=0)
        depth[op] = below + (_terms(op) > 1)
    return max(1, *depth.values())


def _terms(op: Operation) -> int:
    return math.prod(axis.extent for axis in op.reduce_axes) if isinstance(op, ComputeOp) else 1


def _rounds_to_integers(op: Operation) -> bool:
    """Whether an operation quantizes: a float near the middle between two integers may round either way."""
    if not isinstance(op, ComputeOp):
        return False
    is_narrow = any(dtype.is_integer and dtype.numpy.itemsize == 1 for dtype in op.dtypes)
    return is_narrow and any(tensor.dtype.is_float for tensor in op.inputs)
