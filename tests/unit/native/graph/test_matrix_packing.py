"""Decided packing of matrices: what changes, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.build import build
from intarsia.ir import Constant, Function, IRModule, TensorType, Var
from intarsia.native.dag.gemm_form import MatrixPacking
from intarsia.native.graph import KernelDecision, KernelDecisions, PlanOptions, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.gemm import gemm_plans
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.tune.kernels import kernel_groups
from intarsia.tune.passes import TunePacking

ISA = Isa.host()
NATIVE = "cpu -toolchain=native -threads=1"


def product(rows: int, depth: int, columns: int, *, constant: bool, transposed: bool = False) -> IRModule:
    """A product with an epilogue, of a batch of two matrices where the right one is computed."""
    lead = () if constant else (2,)
    x = Var("x", checked_type=TensorType.of(np.zeros((*lead, rows, depth), np.float32)))
    shape = (*lead, columns, depth) if transposed else (*lead, depth, columns)
    data = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    right = Constant(data) if constant else Var("y", checked_type=TensorType.of(data))
    params = (x,) if isinstance(right, Constant) else (x, right)
    order = (*range(len(lead)), len(lead) + 1, len(lead))
    read = call("Transpose", right, perm=order) if transposed else right
    return IRModule.from_expr(Function(params, call("Relu", call("MatMul", x, read))))


@pytest.mark.parametrize(
    ("packing", "copies", "is_along_sum"),
    [("", True, False), ("unpacked", False, False), ("panels", True, False), ("along_sum", True, False)],
)
def test_a_decision_sets_the_plan(packing: str, copies: bool, is_along_sum: bool) -> None:
    """Columns of this right matrix are contiguous, so vectors cannot run along the sum: the rule stays."""
    function = product(128, 64, 128, constant=False)["main"]
    assert isinstance(function, Function)
    (key,) = {kernel.rule_group for kernel in plan_region(function, ISA).kernels}
    decisions = KernelDecisions({key: KernelDecision(packing=packing)})
    (kernel,) = plan_region(function, ISA, PlanOptions(decisions=decisions)).kernels
    (plan,) = gemm_plans(ScheduleTask(kernel.dag, ISA, 1))
    assert (plan.copies, plan.is_along_sum) == (copies, is_along_sum)


@settings(max_examples=examples(20), deadline=None)
@given(
    rows=st.integers(1, 40),
    depth=st.integers(2, 70),
    columns=st.integers(1, 70),
    constant=st.booleans(),
    transposed=st.booleans(),
    packing=st.sampled_from([mode.value for mode in MatrixPacking]),
    threads=st.sampled_from([1, 2]),
)
def test_all_modes_compute_the_same(
    rows: int, depth: int, columns: int, constant: bool, transposed: bool, packing: str, threads: int
) -> None:
    module = product(rows, depth, columns, constant=constant, transposed=transposed)
    target = Target.for_toolchain("native", threads=threads)
    keys = [group.key for group in kernel_groups(module, str(target))]
    decisions = KernelDecisions(dict.fromkeys(keys, KernelDecision(packing=packing)))
    types = [parameter.checked_type for parameter in module["main"].params]
    shapes = [type_.static_shape for type_ in types if isinstance(type_, TensorType)]
    data = [np.random.default_rng(2).standard_normal(shape).astype(np.float32) for shape in shapes]
    (expected,) = build(module).run_flat(*data)
    decided = target.with_options(decisions=str(decisions))
    (result,) = build(partition_whole(module, decided)).run_flat(*data)
    np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=1e-3, atol=1e-3)


def test_packing_is_asked_where_it_may_pay() -> None:
    def modes(module: IRModule) -> list[tuple[str, ...]]:
        return [
            tuple(item.choices) for item in TunePacking().questions(kernel_groups(module, NATIVE), NATIVE)
        ]

    every = tuple(mode.value for mode in MatrixPacking)
    assert modes(product(8, 64, 64, constant=True)) == [every]
    assert modes(product(128, 64, 64, constant=True)) == [], "many rows use what was packed ahead of time"
    assert modes(product(128, 64, 64, constant=False)) == [every]
