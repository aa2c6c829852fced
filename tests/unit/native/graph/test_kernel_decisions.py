"""Decisions on single groups: what they change, and that results stay."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import Constant, Expr, Function, GlobalVar, IRModule, TensorType, Tuple, Var
from intarsia.native.graph import KernelDecision, KernelDecisions, PlanOptions, RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call
from intarsia.toolchain.native.options import DECISIONS

pytestmark = pytest.mark.quick_tests(5)

ISA = Isa.host()


def convolution(x: Expr, made: int, taps: int = 1) -> Expr:
    """A convolution that keeps the rows and columns."""
    assert isinstance(x.checked_type, TensorType)
    shape = (made, x.checked_type.static_shape[1], taps, taps)
    weight = constant(np.sin(np.arange(np.prod(shape)) * 1.7).reshape(shape) / 4)
    return call("Conv", x, weight, pads=(taps // 2,) * 4)


def image(channels: int) -> Var:
    return Var("x", checked_type=TensorType.of(np.zeros((1, channels, 6, 6), np.float32)))


def operators(plan: RegionPlan) -> list[str]:
    """The operators of each kernel."""
    return [kernel.name.rpartition("_")[0] for kernel in plan.kernels]


def network() -> Function:
    """Two equal convolutions with epilogues, a pool, a sum with a branch, and a convolution."""
    x = image(16)
    first = call("Relu", convolution(x, 16, 3))
    second = call("Relu", convolution(first, 16, 3))
    pooled = call("MaxPool", second, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    return Function((x,), call("Tanh", call("Add", convolution(pooled, 16), first)))


def planned(function: Function, decisions: KernelDecisions | None = None) -> RegionPlan:
    options = PlanOptions() if decisions is None else PlanOptions(decisions=decisions)
    return plan_region(function, ISA, options)


def keys(plan: RegionPlan) -> list[str]:
    """The keys of the groups of the rules, without repetitions."""
    return list(dict.fromkeys(kernel.rule_group for kernel in plan.kernels if kernel.rule_group))


def all_decided(function: Function, decision: KernelDecision) -> RegionPlan:
    return planned(function, KernelDecisions(dict.fromkeys(keys(planned(function)), decision)))


def check(function: Function, plans: Sequence[RegionPlan]) -> None:
    """Compare the results of plans with the reference's."""
    (x,) = function.params
    assert isinstance(x.checked_type, TensorType)
    given = np.random.default_rng(0).standard_normal(x.checked_type.static_shape).astype(np.float32)
    expected = build(IRModule({GlobalVar("main"): function})).run_flat(given)
    for plan in plans:
        for found, right in zip(run_plan(plan, [given], ISA), expected, strict=True):
            np.testing.assert_allclose(found, np.asarray(right), rtol=1e-3, atol=1e-4)


def test_a_table_is_read_as_it_is_written() -> None:
    table = KernelDecisions(
        {
            "0123456789ab": KernelDecision(lanes=0, threads=1),
            "ba9876543210": KernelDecision(borders=(0, 2), form="padded", in_place=False),
            "aaaaaaaaaaaa": KernelDecision(),
        }
    )
    text = "0123456789ab:lanes=0:threads=1,ba9876543210:borders=0+2:form=padded:in_place=false"
    assert str(table) == text
    assert KernelDecisions.parse(text) == table
    assert DECISIONS.check(text) == text
    assert KernelDecisions.parse("") == KernelDecisions()


def test_settings_join_those_that_were_made() -> None:
    table = KernelDecisions.parse("0123456789ab:lanes=0")
    changed = table.updated({"0123456789ab": {"threads": "1"}, "ba9876543210": {"borders": "2+1"}})
    assert str(changed) == "0123456789ab:lanes=0:threads=1,ba9876543210:borders=1+2"


@pytest.mark.slow
def test_equal_layers_have_one_key_in_every_process() -> None:
    plan = planned(network())
    groups = [kernel.group for kernel in plan.kernels if "conv_relu" in kernel.name]
    assert len(groups) == 2
    assert len(set(groups)) == 1
    assert [key for key in operators(plan) if "blocked" not in key] == [
        "conv_relu",
        "conv_relu",
        "maxpool",
        "conv_add_tanh",
    ]
    assert len(keys(plan)) == 3
    code = f"from {__name__} import *; print(*keys(planned(network())))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split() == keys(plan)


def test_without_decisions_on_its_groups_a_plan_is_the_old_one() -> None:
    function = network()
    other = KernelDecisions({"0123456789ab": KernelDecision(lanes=0, threads=1, borders=(0,))})
    assert [kernel.name for kernel in planned(function, other).kernels] == [
        kernel.name for kernel in planned(function).kernels
    ]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("lanes", [0, 4, 8, 16])
def test_block_sizes_compute_the_same(lanes: int) -> None:
    function = network()
    plan = all_decided(function, KernelDecision(lanes=lanes))
    written = {plan.values[number].lanes for kernel in plan.kernels for number in kernel.outputs}
    assert written <= {0, lanes}
    assert lanes in written
    check(function, [plan])


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("lanes", [0, 4, 16])
def test_layouts_change_between_kernels_of_different_blocks(lanes: int) -> None:
    function = network()
    rule = planned(function)
    for key in keys(rule):
        check(function, [planned(function, KernelDecisions({key: KernelDecision(lanes=lanes)}))])


def test_parts_with_different_blocks_are_not_written_in_place() -> None:
    x = image(16)
    parts = [convolution(x, 16), convolution(x, 32)]
    function = Function((x,), call("Relu", call("Concat", *parts, axis=1)))
    rule = planned(function)
    assert "concat" not in operators(rule)
    narrow = next(kernel.rule_group for kernel in rule.kernels if "conv" in kernel.name)
    plan = planned(function, KernelDecisions({narrow: KernelDecision(lanes=4)}))
    assert "concat" in operators(plan)
    check(function, [plan])


def test_a_kernel_ends_at_a_border() -> None:
    function = network()
    rule = planned(function)
    key = next(kernel.group for kernel in rule.kernels if "conv_relu" in kernel.name)
    plan = planned(function, KernelDecisions({key: KernelDecision(borders=(0,))}))
    assert operators(plan).count("conv_relu") == 0
    assert operators(plan).count("relu") == 2
    assert {kernel.rule_group for kernel in plan.kernels} == {kernel.rule_group for kernel in rule.kernels}
    check(function, [plan, all_decided(function, KernelDecision(borders=tuple(range(8))))])


def test_pieces_of_a_split_group_have_keys_of_their_own() -> None:
    function = network()
    key = next(kernel.group for kernel in planned(function).kernels if "conv_relu" in kernel.name)
    split = KernelDecisions({key: KernelDecision(borders=(0,))})
    piece = next(kernel for kernel in planned(function, split).kernels if kernel.name.startswith("relu_"))
    assert piece.group != key
    both = planned(function, split.updated({piece.group: {"threads": "1"}}))
    assert [kernel.threads for kernel in both.kernels if kernel.name.startswith("relu_")] == [1, 1]
    assert {kernel.threads for kernel in both.kernels if not kernel.name.startswith("relu_")} == {None}


def test_what_is_not_in_place_has_a_kernel() -> None:
    x = Var("x", checked_type=TensorType.of(np.zeros((4, 16), np.float32)))
    joined: Expr = call("Concat", call("Relu", x), call("Tanh", x), axis=0)
    ints = [Constant(np.array([number], np.int64)) for number in (4, 8, 0)]
    piece = call("Slice", call("Neg", joined), *ints)
    function = Function((x,), Tuple((call("Exp", piece), call("Mul", joined, constant(2.0)))))
    rule = planned(function)
    assert not {"concat", "slice"} & set(operators(rule))
    line = planned(
        function, KernelDecisions(dict.fromkeys(special_keys(function), KernelDecision(in_place=False)))
    )
    assert {"concat", "slice"} <= set(operators(line))
    check(function, [rule, line])


def special_keys(function: Function) -> list[str]:
    """The keys of the groups that have no kernel by rule."""
    from intarsia.native.graph.group_key import group_key
    from intarsia.native.graph.straight_line import StraightLine

    line = StraightLine.of(function)
    return [group_key([step], line.values) for step in line.steps if str(step.op) in ("Concat", "Slice")]
