"""A transposed matrix times few columns is a product of rows by the matrix as it is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.run_plan import run_plan

import intarsia as ia
from intarsia.ir import DType, Expr, Function, TensorType, Tuple, Var
from intarsia.ir.parser import parse_module
from intarsia.native.graph import plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call
from intarsia.passes import InferType

ISA = Isa.host()


def variable(name: str, *shape: int) -> Var:
    return Var(name, checked_type=TensorType(shape, DType.FLOAT32))


def swapped(x: Expr, rank: int) -> Expr:
    return call("Transpose", x, perm=(*range(rank - 2), rank - 1, rank - 2))


def kernels(function: Function) -> list[str]:
    """Return the names of a plan's kernels, without the digests."""
    return [kernel.name.rsplit("_", 1)[0] for kernel in plan_region(function, ISA).kernels]


@settings(max_examples=examples(25, quick=3), deadline=None)
@given(
    lead=st.lists(st.integers(1, 3), max_size=2).map(tuple),
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 70)),
    has_bias=st.booleans(),
    is_turned=st.booleans(),
    seed=st.integers(0, 99),
)
def test_results_are_those_of_the_transposed_matrix(
    lead: tuple[int, ...], sizes: tuple[int, int], has_bias: bool, is_turned: bool, seed: int
) -> None:
    depth, rows = sizes
    matrix, bias = variable("a", *lead, depth, rows), variable("c", rows, 1)
    column = variable("x", *lead, 1, depth) if is_turned else variable("x", *lead, depth, 1)
    rank = len(lead) + 2
    right = swapped(column, rank) if is_turned else column
    result = call("MatMul", swapped(matrix, rank), right)
    params = (matrix, column, bias) if has_bias else (matrix, column)
    function = Function(params, call("Add", result, bias) if has_bias else result)
    random = np.random.default_rng(seed)
    arrays = [
        random.standard_normal(param.checked_type.static_shape).astype(np.float32)  # type: ignore[union-attr]
        for param in params
    ]
    assert all("transpose" not in name for name in kernels(function))
    (found,) = run_plan(plan_region(function, ISA), arrays, ISA)
    wide = [array.astype(np.float64) for array in arrays]
    expected = wide[0].swapaxes(-1, -2) @ wide[1].reshape(*lead, depth, 1)
    np.testing.assert_allclose(found, expected + wide[2] if has_bias else expected, rtol=1e-4, atol=1e-4)


def _arrays(*params: Var) -> list[npt.NDArray[np.float32]]:
    """Return an array for each parameter."""
    random = np.random.default_rng(0)
    types = [param.checked_type for param in params]
    shapes = [type_.static_shape for type_ in types if isinstance(type_, TensorType)]
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


@settings(max_examples=examples(25, quick=3), deadline=None)
@given(
    lead=st.lists(st.integers(1, 3), max_size=2).map(tuple),
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 70), st.integers(2, 20)),
    epilogue=st.sampled_from(("none", "Relu", "Softmax")),
    is_turned=st.booleans(),
)
def test_products_of_few_columns_are_those_of_the_transposed_matrix(
    lead: tuple[int, ...], sizes: tuple[int, int, int], epilogue: str, is_turned: bool
) -> None:
    (depth, rows, columns), rank = sizes, len(lead) + 2
    matrix = variable("a", *lead, depth, rows)
    other = variable("x", *lead, *((columns, depth) if is_turned else (depth, columns)))
    result = call("MatMul", swapped(matrix, rank), swapped(other, rank) if is_turned else other)
    function = Function((matrix, other), result if epilogue == "none" else call(epilogue, result))
    arrays = _arrays(matrix, other)
    (found,) = run_plan(plan_region(function, ISA), arrays, ISA)
    left, right = (array.astype(np.float64) for array in arrays)
    expected = left.swapaxes(-1, -2) @ (right.swapaxes(-1, -2) if is_turned else right)
    if epilogue == "Relu":
        expected = np.maximum(expected, 0)
    if epilogue == "Softmax":
        powers = np.exp(expected - expected.max(axis=-1, keepdims=True))
        expected = powers / powers.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize(("columns", "is_moved"), [(12, False), (50, True)])
def test_a_matrix_is_not_moved_for_few_columns(columns: int, *, is_moved: bool, is_turned: bool) -> None:
    matrix, other = variable("a", 90, 70), variable("x", *((columns, 90) if is_turned else (90, columns)))
    result = call("MatMul", swapped(matrix, 2), swapped(other, 2) if is_turned else other)
    plan = plan_region(Function((matrix, other), result), ISA)
    shapes = [plan.values[number].type.static_shape for kernel in plan.kernels for number in kernel.outputs]
    assert ((70, 90) in shapes) == is_moved
    assert ((columns, 70) in shapes) != is_moved
    arrays = _arrays(matrix, other)
    (found,) = run_plan(plan, arrays, ISA)
    np.testing.assert_allclose(found, arrays[0].T @ (arrays[1].T if is_turned else arrays[1]), atol=1e-4)


def test_a_right_matrix_that_others_read_is_transposed_for_them() -> None:
    matrix, other = variable("a", 90, 70), variable("x", 4, 90)
    turned = swapped(other, 2)
    both = Tuple((call("MatMul", swapped(matrix, 2), turned), call("Exp", turned)))
    function = Function((matrix, other), both)
    arrays = _arrays(matrix, other)
    product, powers = run_plan(plan_region(function, ISA), arrays, ISA)
    np.testing.assert_allclose(product, arrays[0].T @ arrays[1].T, atol=1e-4)
    np.testing.assert_allclose(powers, np.exp(arrays[1].T), rtol=1e-5)


def test_a_matrix_that_others_read_is_transposed_once() -> None:
    matrix, column = variable("a", 30, 40), variable("x", 30, 1)
    moved = swapped(matrix, 2)
    both = Tuple((call("MatMul", moved, column), call("Relu", moved)))
    assert any("transpose" in name for name in kernels(Function((matrix, column), both)))
    returned = Tuple((call("MatMul", moved, column), moved))
    assert any("transpose" in name for name in kernels(Function((matrix, column), returned)))


@pytest.mark.parametrize(
    ("matrix", "perm", "column"),
    [((30, 40), (1, 0), (30, 2)), ((4, 4, 40), (1, 2, 0), (4, 4, 1)), ((2, 30, 40), (0, 2, 1), (30, 1))],
    ids=["two columns", "another order", "a shared column"],
)
def test_other_products_stay(matrix: tuple[int, ...], perm: tuple[int, ...], column: tuple[int, ...]) -> None:
    a, x = variable("a", *matrix), variable("x", *column)
    result = call("MatMul", call("Transpose", a, perm=perm), x)
    assert any("transpose" in name for name in kernels(Function((a, x), result)))


def test_a_product_that_is_read_in_another_shape() -> None:
    text = """#[version = "0.1"]
def @main(%a: Tensor[(4, 3), float32], %x: Tensor[(4, 1), float32]) {
  %0 = MatMul(Transpose(%a, perm=[1, 0]), %x);
  %1 = Squeeze(%0);
  (Exp(%1), Neg(%0))
}"""
    a, x = np.arange(12, dtype=np.float32).reshape(4, 3) / 9, np.ones((4, 1), np.float32)
    first, second = ia.build(InferType()(parse_module(text)), "native")(a, x)
    np.testing.assert_allclose(first, np.exp((a.T @ x)[:, 0]), rtol=1e-5)
    np.testing.assert_allclose(second, -(a.T @ x), rtol=1e-5)
