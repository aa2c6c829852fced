"""Products of tensors by one matrix: rows of all batches are one matrix, and results stay what they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import Expr, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call

ISA = Isa.host()
SHAPE = (2, 3, 4, 16)


def numbers(*shape: int, seed: int = 1) -> Expr:
    return constant(np.random.default_rng(seed).standard_normal(shape) / 4)


def checked(shape: tuple[int, ...], make: Callable[[Expr], Expr]) -> RegionPlan:
    """The plan of a function of one parameter, after its result was compared with the reference's."""
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x = Var("x", checked_type=TensorType.of(data))
    module = IRModule({GlobalVar("main"): Function((x,), make(x))})
    function = module["main"]
    assert isinstance(function, Function)
    plan = plan_region(function, ISA)
    (expected,) = build(module).run_flat(data)
    np.testing.assert_allclose(run_plan(plan, [data], ISA)[0], np.asarray(expected), atol=1e-5)
    return plan


def product_shapes(plan: RegionPlan) -> list[tuple[int, ...]]:
    return [output.shape for kernel in plan.kernels for output in kernel.dag.outputs]


JOINED: dict[str, Callable[[Expr], Expr]] = {
    "product": lambda x: call("MatMul", x, numbers(16, 8)),
    "bias and activation": lambda x: call("Relu", call("Add", call("MatMul", x, numbers(16, 8)), numbers(8))),
    "bias with dimensions of 1": lambda x: call("Add", numbers(1, 1, 8), call("MatMul", x, numbers(16, 8))),
    "residual": lambda x: call("Add", call("MatMul", call("Abs", x), numbers(16, 16)), x),
    "scalar": lambda x: call("Mul", call("MatMul", x, numbers(16, 8)), constant(np.array(0.5))),
}


@pytest.mark.parametrize("name", JOINED)
def test_rows_are_joined(name: str) -> None:
    shapes = product_shapes(checked(SHAPE, JOINED[name]))
    assert len(shapes[-1]) == 2
    assert shapes[-1][0] == 24


APART: dict[str, Callable[[Expr], Expr]] = {
    "a matrix for each batch": lambda x: call("MatMul", x, numbers(3, 16, 8)),
    "a bias for each row": lambda x: call("Add", call("MatMul", x, numbers(16, 8)), numbers(4, 1)),
    "a vector": lambda x: call("MatMul", x, numbers(16)),
}


@pytest.mark.parametrize("name", APART)
def test_rows_stay_apart(name: str) -> None:
    assert all(len(shape) >= 3 for shape in product_shapes(checked(SHAPE, APART[name])))


def test_square_matrices_of_batches_stay_apart() -> None:
    """Their shape is that of the rows."""
    plan = checked((2, 3, 4, 4), lambda x: call("MatMul", x, numbers(2, 3, 4, 4)))
    assert product_shapes(plan) == [(2, 3, 4, 4)]


@pytest.mark.parametrize("shape", [(1, 4, 16), (4, 16), (1, 1, 5, 16)])
def test_one_batch_is_left_as_it_is(shape: tuple[int, ...]) -> None:
    plan = checked(shape, lambda x: call("MatMul", x, numbers(16, 8)))
    assert product_shapes(plan) == [(*shape[:-1], 8)]


sizes = st.integers(1, 4)


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(sizes, min_size=1, max_size=3), st.integers(1, 20), st.booleans(), st.booleans())
def test_random_shapes(leading: list[int], depth: int, has_bias: bool, has_residual: bool) -> None:
    def make(x: Expr) -> Expr:
        made = call("MatMul", x, numbers(depth, depth))
        made = call("Add", made, numbers(*[1] * (len(leading) - 1), depth)) if has_bias else made
        return call("Mul", made, x) if has_residual else made

    checked((*leading, depth), make)
