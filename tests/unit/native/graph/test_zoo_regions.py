"""Plans of whole networks: structure of all, results of small ones."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import Function, IRModule, TensorType
from intarsia.measure.judge.compare_outputs import compare
from intarsia.measure.judge.tolerance import tolerance_for
from intarsia.native.graph import RegionPlan, plan_region
from intarsia.native.machine.isa import Isa

ISA = Isa.host()
SMALL = ("bert_tiny", "gpt2_tiny", "mnist", "squeezenet")
MIXED = {"lstm"}  # its LSTM operators are taken apart before a plan is made
LARGE = sorted({model.name for model in zoo()} - set(SMALL) - MIXED)
NORMALIZED_ALONE = {"densenet121", "nasnet_a"}
"""Models that normalise what a Concat joins, so that there is no convolution before."""


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)])
def test_a_plan_is_in_order_and_complete(name: str) -> None:
    plan = plan_region(_main(from_onnx(build_model(name, 0))), ISA)
    known = set(plan.params)
    for kernel in plan.kernels:
        read = {plan.root(number) for number in kernel.inputs.values()}
        assert all(
            number in known or _is_piece(plan, number, known) or _is_joined(plan, number, known)
            for number in read
        )
        assert not known & set(kernel.outputs)
        known |= set(kernel.outputs)
        names = [tensor.op.name for tensor in kernel.dag.placeholders]
        assert sorted(names) == sorted([*kernel.inputs, *kernel.constants])
        for tensor, number in zip(kernel.dag.outputs, kernel.outputs, strict=True):
            stored = plan.values[number].stored_shape
            assert tensor.shape == stored or _has_joined_dimensions(tensor.shape, stored)
    assert {plan.root(number) for number in plan.results} <= known
    assert len({kernel.name for kernel in plan.kernels}) == len({kernel.dag for kernel in plan.kernels})
    assert plan.arena_bytes < sum(plan.values[number].size_bytes for number in plan.arena)
    activations = [kernel for kernel in plan.kernels if kernel.name.startswith(("batchnorm", "clip", "gelu"))]
    assert Counter(kernel.name for kernel in activations) == Counter() or name in NORMALIZED_ALONE


def _is_piece(plan: RegionPlan, number: int, known: set[int]) -> bool:
    """Whether a value lies in the memory of one that has been written."""
    begin, size = plan.arena[number], plan.values[number].size_bytes
    return any(
        plan.arena[other] <= begin
        and begin + size <= plan.arena[other] + plan.values[other].size_bytes
        and plan.values[other].size_bytes > size
        for other in known & plan.arena.keys()
    )


def _is_joined(plan: RegionPlan, number: int, known: set[int]) -> bool:
    """Whether what has been written fills the memory of a value that no kernel writes as a whole."""
    begin, size = plan.arena[number], plan.values[number].size_bytes
    parts = {
        plan.arena[other]: plan.values[other].size_bytes
        for other in known & plan.arena.keys()
        if begin <= plan.arena[other] < begin + size
    }
    place = begin
    while place in parts:
        place += parts[place]
    return place >= begin + size


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_small_network_is_right(name: str) -> None:
    module = from_onnx(build_model(name, 0))
    function = _main(module)
    random = np.random.default_rng(0)
    inputs = []
    for param in function.params:
        type_ = param.checked_type
        assert isinstance(type_, TensorType)
        drawn = random.standard_normal(type_.static_shape)
        inputs.append((drawn > 0 if type_.dtype.is_integer else drawn).astype(type_.dtype.numpy))
    expected = [np.asarray(value) for value in build(module).run_flat(*inputs)]
    found = run_plan(plan_region(function, ISA), inputs, ISA)
    names = [f"result {position}" for position in range(len(expected))]
    tolerances = [tolerance_for(each.dtype, 256, depth=50) for each in expected]
    report = compare(found, expected, names, tolerances)
    assert report.passed, report.message


def _main(module: IRModule) -> Function:
    function = module["main"]
    assert isinstance(function, Function)
    return function


def _has_joined_dimensions(shape: tuple[int, ...], stored: tuple[int, ...]) -> bool:
    """Whether a kernel sees neighbouring dimensions of a tensor as one."""
    return len(shape) < len(stored) and math.prod(shape) == math.prod(stored)
