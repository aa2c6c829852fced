"""DAGs compiled with the state that one rule gives them, run on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.compute_rule_checks import reference as results_of_reference

from intarsia.ir import GlobalVar, IRModule, PrimFunc, with_prim_func_fields
from intarsia.ir.verify import verify
from intarsia.native import te
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.default_schedule import Rule
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.tir import Simplify, UnrollLoop, default_tir
from intarsia.transform import Sequential

Array = npt.NDArray[Any]


def normal(*shape: int, seed: int = 0) -> Array:
    """Normally distributed float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def reference(name: str, args: Sequence[Array], **attrs: Any) -> Array:
    """The first result of an operator, by onnx's reference implementation."""
    return results_of_reference(name, args, **attrs)[0]


def state_of(dag: ComputeDAG, rule: Rule, isa: Isa, threads: int = 1) -> LoopState:
    """What a rule gives for a DAG that it must apply to."""
    state = rule(ScheduleTask(dag, isa, threads))
    assert state is not None
    return state


def loops_of(dag: ComputeDAG, rule: Rule, isa: Isa, threads: int = 1) -> PrimFunc:
    """The loop function of that state after the passes, verified."""
    lowered = lower(dag, state_of(dag, rule, isa, threads))
    lowered = with_prim_func_fields(lowered, attrs=lowered.attrs.updated(contract=True))
    mod = default_tir(isa.vector_bytes, isa.vector_registers)(IRModule({GlobalVar("f"): lowered}))
    verify(mod)
    return mod.prim_func("f")


def written_out(function: PrimFunc) -> PrimFunc:
    """A loop function as the emitter sees it in the end: counters of unrolled loops are numbers."""
    return Sequential([UnrollLoop(), Simplify()])(IRModule({GlobalVar("f"): function})).prim_func("f")


def computed(
    dag: ComputeDAG, arrays: Mapping[te.Tensor, Array], rule: Rule, isa: Isa, threads: int = 1
) -> Array:
    """The only result of the compiled loops."""
    (output,) = dag.outputs
    result = np.full(output.shape, np.nan, output.dtype.numpy)
    kernel = compile_kernel(loops_of(dag, rule, isa, threads), isa).load()
    with ThreadPool(threads) as pool:
        kernel(*(arrays[tensor] for tensor in dag.placeholders), result, pool=pool)
    return result
