"""Channelwise operations between convolutions by rows share rows; others do not."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pytest
from tests.emulated_cpus import CPUS

from intarsia.ir import Function, parser
from intarsia.native.cores.plan_loops import bound_cycles, loops_of_plan
from intarsia.native.cores.simulate import simulate_plan
from intarsia.native.dag import structural_key
from intarsia.native.graph import PlanOptions, plan_region
from intarsia.native.graph.region_plan import KernelPlan, RegionPlan
from intarsia.native.te.operators.blocked_layout import SHARES_ROWS
from intarsia.op import infer_types
from intarsia.target.machine_families import family_model

ISA = replace(CPUS["haswell"], cores=2, machine=family_model("haswell"))
CHANNELS, SIZE = 64, 40
DEPTHWISE = "group=GROUPS, pads=[1, 1, 1, 1], kernel_shape=[3, 3]"


def _plan(body: str, size: int = SIZE, threads: int = 2, channels: int = CHANNELS) -> RegionPlan:
    """Return the plan of a program on an image x, with weights of pointwise and depthwise convolutions."""
    pointwise = np.ones((channels, channels, 1, 1), np.float32)
    constants = (pointwise, np.ones((channels, 1, 3, 3), np.float32))
    text = f"def @main(%x: Tensor[(1, {channels}, {size}, {size}), float32]) {{ {body} }}"
    named = (
        text.replace("POINT", "meta[Constant][0]")
        .replace("DEPTH", "meta[Constant][1]")
        .replace("GROUPS", str(channels))
    )
    function = infer_types(parser.parse_module(named, constants))["main"]
    assert isinstance(function, Function)
    return plan_region(function, ISA, PlanOptions(threads=threads))


def _marked(plan: RegionPlan) -> list[KernelPlan]:
    """Return the kernels that say that rows are shared."""
    return [kernel for kernel in plan.kernels if any(SHARES_ROWS in op.attrs for op in kernel.dag.ops)]


BETWEEN = f"Conv(Conv(Conv(%x, POINT), DEPTH, {DEPTHWISE}), POINT)"


def test_a_depthwise_convolution_between_pointwise_ones_shares_rows() -> None:
    plan = _plan(BETWEEN)
    (kernel,) = _marked(plan)
    assert kernel.name.rpartition("_")[2] == structural_key(kernel.dag)[: len(kernel.name.rpartition("_")[2])]
    loops = loops_of_plan(plan, ISA, 2)[id(kernel.dag)]
    (touched,) = loops.phases
    written = [line for item in touched.of(0, 1) if item.is_written for line in item.lines]
    of_block = SIZE * SIZE * 8 * 4 // 64
    assert {line // of_block for line in written} == set(range(8))  # a band of all blocks, not one block


GLOBAL_POOL = f"GlobalAveragePool(Conv(Conv(%x, POINT), DEPTH, {DEPTHWISE}))"


@pytest.mark.parametrize(
    ("body", "size", "threads", "channels"),
    [
        pytest.param(BETWEEN, SIZE, 1, 64, id="one thread"),
        pytest.param(BETWEEN, 7, 2, 512, id="convolutions by blocks"),
        pytest.param(f"Conv(%x, DEPTH, {DEPTHWISE})", SIZE, 2, 64, id="alone"),
        pytest.param(GLOBAL_POOL, SIZE, 2, 64, id="global pool"),
    ],
)
def test_others_share_blocks(body: str, size: int, threads: int, channels: int) -> None:
    assert not _marked(_plan(body, size, threads, channels))


def test_pools_between_convolutions_share_rows_through_joined_values() -> None:
    pool = "MaxPool(Concat(%a, %b, axis=1), kernel_shape=[3, 3], strides=[2, 2])"
    weights = f"""
        def @main(%x: Tensor[(1, {CHANNELS}, 56, 56), float32]) {{
          let %a = Conv(%x, meta[Constant][0]);
          let %b = Conv(%a, meta[Constant][0]);
          Conv({pool}, meta[Constant][1])
        }}"""
    constants = (
        np.ones((CHANNELS, CHANNELS, 1, 1), np.float32),
        np.ones((CHANNELS, 2 * CHANNELS, 1, 1), np.float32),
    )
    function = infer_types(parser.parse_module(weights, constants))["main"]
    assert isinstance(function, Function)
    plan = plan_region(function, ISA, PlanOptions(threads=2))
    assert [kernel.name.partition("_")[0] for kernel in _marked(plan)] == ["maxpool"]


def test_equal_kernels_have_one_computation() -> None:
    body = f"Conv(Conv({BETWEEN}, DEPTH, {DEPTHWISE}), POINT)"
    first, second = _marked(_plan(body))
    assert first.dag is second.dag
    assert first.name == second.name


@pytest.mark.slow
def test_sharing_rows_moves_a_few_lines_at_the_borders_of_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved() -> int:
        """Return the bytes that the depthwise convolution and the one behind it get from another core."""
        plan = _plan(BETWEEN)
        cycles = [bound_cycles(kernel, plan, ISA) for kernel in plan.kernels]
        run = simulate_plan(plan, loops_of_plan(plan, ISA, 2), cycles, 2, ISA.machine)
        convolutions = [kernel for kernel in run.kernels if kernel.name.startswith("conv")]
        return sum(kernel.moved_bytes for kernel in convolutions[1:])

    by_rows = moved()
    planning = importlib.import_module("intarsia.native.graph.plan_region")
    monkeypatch.setattr(planning, "with_shared_rows", lambda kernels, *_: kernels)
    assert by_rows < 0.5 * moved()
