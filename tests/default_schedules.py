"""Scheduled DAGs compiled and run, and the loops as declared to compare them with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.te_evaluator import evaluate

from intarsia.ir import GlobalVar, IRModule, PrimFunc
from intarsia.ir.verify import verify
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import ScheduledDag, scheduled
from intarsia.native.tir import default_tir

Array = npt.NDArray[Any]


def random_inputs(dag: ComputeDAG, seed: int = 0) -> dict[str, Array]:
    """Small whole numbers for each placeholder by name, so that sums are exact in any order."""
    random = np.random.default_rng(seed)
    return {
        tensor.buffer.name: random.integers(0, 4, tensor.shape).astype(tensor.dtype.numpy)
        for tensor in dag.placeholders
    }


def optimised(function: PrimFunc, isa: Isa) -> PrimFunc:
    """A loop function after the passes, verified."""
    mod = default_tir(isa.vector_bytes, isa.vector_registers)(IRModule({GlobalVar("f"): function}))
    verify(mod)
    return mod.prim_func("f")


def run_scheduled(dag: ComputeDAG, inputs: Mapping[str, Array], isa: Isa, threads: int = 1) -> list[Array]:
    """The results of the compiled default schedule; states are checked to rebuild from their steps."""
    found = scheduled(dag, isa, threads)
    assert_rebuilds(found)
    kernel = compile_kernel(optimised(found.lowered(), isa), isa).load()
    packed = {each.tensor_name: each.pack(inputs[each.tensor_name]) for each in found.packings}
    given = [{**inputs, **packed}[tensor.buffer.name] for tensor in found.dag.placeholders]
    results = [np.full(tensor.shape, 77, tensor.dtype.numpy) for tensor in found.dag.outputs]
    with ThreadPool(threads) as pool:
        kernel(*given, *results, pool=pool)
    return results


def run_declared(dag: ComputeDAG, inputs: Mapping[str, Array]) -> list[Array]:
    """The results of the operations as declared, all elements at once by NumPy."""
    return evaluate(dag.outputs, inputs)


def assert_rebuilds(found: ScheduledDag) -> None:
    """Fail unless the history of a state leads to it."""
    again = LoopState.replay(found.dag, found.state.transform_steps)
    assert str(again) == str(found.state)


def assert_matches_declared(dag: ComputeDAG, isa: Isa, threads: int = 1, tolerance: float = 1e-5) -> None:
    """Fail unless the compiled default schedule computes what the DAG declares."""
    inputs = random_inputs(dag)
    found, expected = run_scheduled(dag, inputs, isa, threads), run_declared(dag, inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
