"""Runs a plan kernel by kernel, compiled without any schedule, in an arena that is full of NaN before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import GlobalVar, IRModule, PrimFunc
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.graph import RegionPlan
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower
from intarsia.native.machine.isa import Isa
from intarsia.native.tir.default_tir import default_tir

Array = npt.NDArray[Any]


def run_plan(plan: RegionPlan, inputs: Sequence[Array], isa: Isa) -> list[Array]:
    """The results of a region.

    Args:
        plan: Plan of the region.
        inputs: One for each parameter.
        isa: Instruction set of this machine.
    """
    loaded: dict[str, NativeFunction] = {}
    memory, results = _memory(plan, inputs)
    for kernel in plan.kernels:
        if kernel.name not in loaded:
            loaded[kernel.name] = _compiled(kernel.dag, isa)
        named = {name: _of_shape(plan, memory, number) for name, number in kernel.inputs.items()}
        named |= kernel.constants
        # Bytes are read as words of four by some kernels.
        given = [
            named[tensor.op.name].reshape(-1).view(tensor.buffer.dtype.numpy).reshape(tensor.shape)
            for tensor in kernel.dag.placeholders
        ]
        made = zip(kernel.dag.outputs, kernel.outputs, strict=True)
        written = [_of_shape(plan, memory, number).reshape(tensor.shape) for tensor, number in made]
        loaded[kernel.name](*given, *written)
    for position, source in plan.copied_results:
        results[position][...] = memory[source].reshape(results[position].shape)
    return results


def _memory(plan: RegionPlan, inputs: Sequence[Array]) -> tuple[Mapping[int, Array], list[Array]]:
    """The arrays of values with memory of their own, by number, and the results."""
    raw = np.full(plan.arena_bytes + 64, 0xFF, np.uint8)
    arena = raw[-raw.ctypes.data % 64 :]
    types = [plan.values[number].type for number in plan.results]
    results = [np.full(type_.static_shape, 77, type_.dtype.numpy) for type_ in types]
    found = {number: value.constant for number, value in enumerate(plan.values) if value.constant is not None}
    found |= dict(zip(plan.params, inputs, strict=True))
    found |= {root: results[position] for root, position in plan.written_results.items()}
    for number, begin in plan.arena.items():
        value = plan.values[number]
        part = arena[begin : begin + value.size_bytes]
        found[number] = part.view(value.type.dtype.numpy).reshape(value.stored_shape)
    return found, results


def _of_shape(plan: RegionPlan, memory: Mapping[int, Array], number: int) -> Array:
    value = plan.values[number]
    # A view may show words of several numbers.
    elements = memory[plan.root(number)].reshape(-1).view(value.type.dtype.numpy)
    return elements.reshape(value.stored_shape)


def _compiled(dag: ComputeDAG, isa: Isa) -> NativeFunction:
    main = GlobalVar("main")
    module = IRModule({main: lower(dag, LoopState.initial(dag))})
    function = default_tir(isa.vector_bytes, isa.vector_registers)(module).functions[main]
    assert isinstance(function, PrimFunc)
    return compile_kernel(function, isa).load()
