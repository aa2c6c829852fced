"""Convolutions of bfloat16 tensors that compute in float32 hand their results on in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.emitted_kernels import x86_sets
from tests.unit.native.graph.programs import constant, ints
from tests.unit.native.graph.quantised_layers import convolved
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import DType, Expr, Function, GlobalVar, IRModule, TensorType, Tuple, Var
from intarsia.native.graph import plan_region
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target

Array = npt.NDArray[Any]

BFLOAT16 = DType.BFLOAT16.numpy
SETS = x86_sets()
CHANNELS, GROUPS, SIZE = 12, 4, 8
PADS = (1,) * 4
SHAPE = (1, CHANNELS, SIZE, SIZE)


def _weights() -> list[Array]:
    random = np.random.default_rng(4)
    shapes = (CHANNELS, 3, 3, 3), (CHANNELS, 1, 3, 3), (CHANNELS, 3, 3, 3)
    return [random.standard_normal(shape).astype(BFLOAT16) for shape in shapes]


def _input() -> Array:
    given: Array = np.random.default_rng(5).standard_normal(SHAPE).astype(BFLOAT16)
    return given


def _shuffled(x: Expr) -> Expr:
    parts = call("Reshape", x, ints(1, GROUPS, CHANNELS // GROUPS, SIZE, SIZE))
    return call("Reshape", call("Transpose", parts, perm=(0, 2, 1, 3, 4)), ints(*SHAPE))


def _unit() -> tuple[Var, tuple[Expr, Expr, Expr]]:
    """A grouped convolution without words, its shuffled channels, a depthwise and another grouped one."""
    x = Var("x", checked_type=TensorType(SHAPE, DType.BFLOAT16))
    weights = [constant(weight, BFLOAT16.type) for weight in _weights()]
    first = call("Relu", call("Conv", x, weights[0], group=GROUPS, pads=PADS))
    middle = call("Conv", _shuffled(first), weights[1], group=CHANNELS, pads=(1,) * 4)
    return x, (first, middle, call("Conv", middle, weights[2], group=GROUPS, pads=PADS))


def _exact() -> tuple[Array, Array, Array]:
    weights = [weight.astype(np.float64) for weight in _weights()]
    groups = {"pads": PADS, "group": GROUPS}
    first = np.maximum(convolved(_input().astype(np.float64), weights[0], groups), 0)
    shuffled = first.reshape(1, GROUPS, -1, SIZE, SIZE).transpose(0, 2, 1, 3, 4).reshape(SHAPE)
    middle = convolved(shuffled, weights[1], {"pads": (1,) * 4, "group": CHANNELS})
    return first, middle, convolved(middle, weights[2], groups)


def _function(x: Var, result: Expr) -> Function:
    function = IRModule({GlobalVar("main"): Function((x,), result)})["main"]
    assert isinstance(function, Function)
    return function


def _check(result: Array, exact: Array, roundings: int) -> None:
    error = np.linalg.norm(result.astype(np.float64) - exact) / np.linalg.norm(exact)
    assert error <= roundings * 2.0**-9 + 1e-6


@pytest.mark.parametrize("name", list(SETS))
def test_a_unit_of_grouped_convolutions_is_rounded_once(name: str) -> None:
    x, (*_, last) = _unit()
    plan = plan_region(_function(x, last), SETS[name])
    assert sum(str(kernel.dag).count("bfloat16(") for kernel in plan.kernels) == 1
    (result,) = run_plan(plan, [_input()], SETS[name])
    _check(result, _exact()[2], 1)


def test_a_unit_is_built_as_it_is_planned() -> None:
    x, (*_, last) = _unit()
    target = Target.for_toolchain("native", threads=1)
    executable = build(partition_whole(IRModule({GlobalVar("main"): _function(x, last)}), target))
    _check(np.asarray(executable(_input())), _exact()[2], 1)


@pytest.mark.parametrize("name", list(SETS))
def test_results_and_what_others_read_are_rounded(name: str) -> None:
    x, (first, middle, last) = _unit()
    others = call("Neg", _shuffled(first)), call("Transpose", middle, perm=(0, 2, 3, 1))
    plan = plan_region(_function(x, Tuple((first, last, *others))), SETS[name])
    results = run_plan(plan, [_input()], SETS[name])
    exact = _exact()
    shuffled = exact[0].reshape(1, GROUPS, -1, SIZE, SIZE).transpose(0, 2, 1, 3, 4).reshape(SHAPE)
    expected = exact[0], exact[2], -shuffled, exact[1].transpose(0, 2, 3, 1)
    for result, numbers in zip(results, expected, strict=True):
        assert result.dtype == BFLOAT16
        _check(result, numbers, 3)
