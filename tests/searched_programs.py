"""What tests of the schedule search share: tasks, random programs of them, and whether they are right."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.native_workloads import (
    WORKLOADS,
    Tensors,
    conv2d_nchw_bn_relu,
    double_matmul,
    matmul,
    softmax_nm,
    zero_rank_reduce,
)
from tests.properties.lowering_programs import HARD

from intarsia.autoschedule.mutation import mutate
from intarsia.autoschedule.population import has_nested_parallel, sample_initial_population
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.task import HardwareParams, SearchTask, SpaceOptions
from intarsia.ir import GlobalVar, IRModule
from intarsia.ir.verify import verify
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import infer_bound, lower, lower_naive
from intarsia.native.machine.isa import Isa
from intarsia.native.tir import default_tir, interpret
from intarsia.target.target import Target

Arrays = dict[str, npt.NDArray[Any]]

ODD: dict[str, Callable[[], Tensors]] = {
    "odd_matmul": lambda: matmul(15, 31, 27),
    "odd_double_matmul": lambda: double_matmul(15),
    "odd_rows": lambda: softmax_nm(15, 31),
    "odd_vector": lambda: zero_rank_reduce(61),
    "odd_conv": lambda: conv2d_nchw_bn_relu(1, 15, 15, 3, 7, 3),
}
"""Computations whose extents have few divisors."""
MAKERS = WORKLOADS | HARD | ODD
"""Small computations by name: the field's usual ones, hard ones, and odd ones."""


def task_of(tensors: Tensors, cores: int = 4) -> SearchTask:
    """The task of tensors on a machine with some cores."""
    return SearchTask.of_dag(ComputeDAG(tensors), Target("cpu"), HardwareParams(cores))


@cache
def small_task(name: str) -> SearchTask:
    """The task of a computation of MAKERS."""
    return task_of(MAKERS[name]())


@cache
def small_sketches(name: str) -> tuple[LoopState, ...]:
    """Its sketches."""
    return generate_sketches(small_task(name))


def random_programs(name: str, count: int, seed: int, options: SpaceOptions | None = None) -> list[LoopState]:
    """Sampled programs of a computation, and as many that come of them by one to three mutations."""
    task, rng = small_task(name), Random(seed)
    sampled = sample_initial_population(task, small_sketches(name), -(-count // 2), rng, options)
    found = list(sampled)
    for state in sampled[: count - len(sampled)]:
        mutated = state
        for _ in range(rng.randint(1, 3)):
            mutated = mutate(task, mutated, rng, options) or mutated
        found.append(mutated)
    return found


def check_program(name: str, state: LoopState, *, compiled: bool = False) -> None:
    """Fail unless a program comes of its steps, with all bounds, without nested parallelism, and is right."""
    task = small_task(name)
    replayed = infer_bound(task.dag, LoopState.replay(task.dag, state.transform_steps))
    assert replayed == state
    assert state.concrete
    assert "None" not in str(state)
    assert not has_nested_parallel(state)
    function = lower(task.dag, state)
    mod = IRModule({GlobalVar("f"): function})
    verify(mod)
    arrays, expected = _expected(name)
    given = {param.name: arrays[param.name].copy() for param in function.params}
    if compiled:
        isa = Isa.host()
        made = default_tir(isa.vector_bytes, isa.vector_registers)(mod).prim_func("f")
        compile_kernel(made, isa).load()(*given.values())
    else:
        interpret(function, given)
    for key, wanted in expected.items():
        np.testing.assert_allclose(given[key], wanted, rtol=2e-5, atol=1e-5, err_msg=str(state))


@cache
def _expected(name: str) -> tuple[Arrays, Arrays]:
    """Small whole numbers, whose sums are exact in any order, and the results of the loops as declared."""
    dag = small_task(name).dag
    rng = np.random.default_rng(0)
    function = lower_naive(dag.outputs)
    arrays = {
        tensor.buffer.name: rng.integers(-3, 4, tensor.shape).astype(tensor.dtype.numpy)
        for tensor in dag.placeholders
    }
    arrays |= {p.name: np.zeros(p.shape, p.dtype.numpy) for p in function.params if p.name not in arrays}
    results = {param.name: arrays[param.name].copy() for param in function.params}
    interpret(function, results)
    return arrays, {tensor.buffer.name: results[tensor.buffer.name] for tensor in dag.outputs}
