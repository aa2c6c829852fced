"""Products of attention read heads where they lie, so that no kernel moves them before."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.default_schedules import assert_matches_declared
from tests.effort import examples
from tests.unit.native.graph.programs import constant, ints
from tests.unit.native.graph.run_plan import run_plan

from intarsia.ir import DType, Expr, Function, TensorType, Var
from intarsia.native.graph import PlanOptions, RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call

pytestmark = pytest.mark.quick_tests(5)

ISA = Isa.host()
Doubles = npt.NDArray[np.float64]


class Heads(NamedTuple):
    """The sizes of an attention."""

    batch: int
    queries: int
    keys: int
    heads: int
    size: int


def heads_of(x: Expr, steps: int, sizes: Heads) -> Expr:
    split = call("Reshape", x, ints(sizes.batch, steps, sizes.heads, sizes.size))
    return call("Transpose", split, perm=(0, 2, 1, 3))


def attention(query: Expr, key: Expr, value: Expr, mask: npt.NDArray[np.float32], sizes: Heads) -> Expr:
    turned = call("Transpose", heads_of(key, sizes.keys, sizes), perm=(0, 1, 3, 2))
    scores = call("MatMul", heads_of(query, sizes.queries, sizes), turned)
    scores = call("Add", call("Mul", scores, constant(sizes.size**-0.5)), constant(mask))
    context = call("MatMul", call("Softmax", scores, axis=-1), heads_of(value, sizes.keys, sizes))
    merged = call("Transpose", context, perm=(0, 2, 1, 3))
    return call("Reshape", merged, ints(sizes.batch, sizes.queries, sizes.heads * sizes.size))


def in_doubles(query: Doubles, key: Doubles, value: Doubles, mask: Doubles, sizes: Heads) -> Doubles:
    def split(x: Doubles) -> Doubles:
        return x.reshape(sizes.batch, -1, sizes.heads, sizes.size)

    scores = np.einsum("bshe,bthe->bhst", split(query), split(key)) * sizes.size**-0.5 + mask
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    found: Doubles = np.einsum("bhst,bthe->bshe", weights, split(value))
    return found.reshape(sizes.batch, sizes.queries, -1)


def checked(sizes: Heads, mask: npt.NDArray[np.float32], options: PlanOptions | None = None) -> RegionPlan:
    """The plan of an attention, after its result was compared with one in float64, and its schedules too."""
    rng = np.random.default_rng(0)
    width = sizes.heads * sizes.size
    steps = sizes.queries, sizes.keys, sizes.keys
    data = [rng.standard_normal((sizes.batch, count, width)).astype(np.float32) for count in steps]
    params = [Var(f"x{place}", checked_type=TensorType.of(array)) for place, array in enumerate(data)]
    function = Function(tuple(params), attention(params[0], params[1], params[2], mask, sizes))
    plan = plan_region(function, ISA, options)
    q, k, v, bias = (array.astype(np.float64) for array in (*data, mask))
    np.testing.assert_allclose(run_plan(plan, data, ISA)[0], in_doubles(q, k, v, bias, sizes), atol=3e-6)
    for kernel in plan.kernels:
        assert_matches_declared(kernel.dag, ISA, 2)
    return plan


def operators(plan: RegionPlan) -> list[str]:
    return [kernel.name.rsplit("_", 1)[0] for kernel in plan.kernels]


def no_mask(sizes: Heads) -> npt.NDArray[np.float32]:
    return np.zeros((sizes.queries, sizes.keys), np.float32)


def causal_mask(sizes: Heads) -> npt.NDArray[np.float32]:
    ahead = np.triu(np.ones((sizes.queries, sizes.keys), np.bool_), 1)
    return np.where(ahead, np.float32(-10000), np.float32(0))


MASKS: dict[str, Callable[[Heads], npt.NDArray[np.float32]]] = {"none": no_mask, "causal": causal_mask}


@pytest.mark.slow
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(
    "sizes",
    [
        Heads(1, 33, 33, 3, 32),
        Heads(2, 17, 29, 2, 64),
        Heads(1, 40, 40, 2, 80),
        Heads(1, 8, 300, 2, 7),
    ],
    ids=str,
)
def test_no_kernel_moves_queries_keys_or_values(sizes: Heads, mask: str) -> None:
    plan = checked(sizes, MASKS[mask](sizes))
    assert operators(plan)[1:] == ["transpose"]
    computed = [op.name.split(".")[0].rstrip("_2") for op in plan.kernels[0].dag.ops]
    assert computed.count("matmul") == 2
    assert "softmax" in computed


def test_attention_in_several_kernels() -> None:
    sizes = Heads(1, 33, 33, 3, 32)
    plan = checked(sizes, causal_mask(sizes), PlanOptions(attention=False))
    assert [name.count("matmul") for name in operators(plan)] == [1, 0, 1, 0]


def test_one_head() -> None:
    assert len(operators(checked(Heads(1, 20, 20, 1, 32), no_mask(Heads(1, 20, 20, 1, 32))))) == 1


def test_one_query_has_no_block_of_rows() -> None:
    sizes = Heads(1, 1, 12, 4, 16)
    assert "softmax" in operators(checked(sizes, no_mask(sizes)))


def test_scores_that_something_else_reads_are_a_result_of_their_own() -> None:
    def make(x: Expr, y: Expr) -> Expr:
        scores = call("MatMul", x, turned(y))
        context = call("MatMul", call("Softmax", scores, axis=-1), y)
        return call("Add", context, scores)

    assert [name.count("matmul") for name in kernels_of(make)] == [1, 0, 1]


def test_softmax_beside_a_product_or_on_its_right_is_none_of_attention() -> None:
    def scores(x: Expr, y: Expr) -> Expr:
        return call("Softmax", call("MatMul", x, turned(y)), axis=-1)

    beside = kernels_of(lambda x, y: call("Add", call("MatMul", x, y), scores(x, y)))
    right = kernels_of(lambda x, y: call("MatMul", y, scores(x, y)))
    assert sum(name.count("softmax") for name in beside) == 1
    assert [name.count("matmul") for name in right] == [1, 0, 1]


def test_softmax_of_columns_is_none_of_attention() -> None:
    found = kernels_of(lambda x, y: call("MatMul", call("Softmax", call("MatMul", x, turned(y)), axis=-2), y))
    assert [name.count("matmul") for name in found] == [1, 0, 1]


def kernels_of(make: Callable[[Expr, Expr], Expr]) -> list[str]:
    shape = (2, 3, 16, 16)
    data = [np.random.default_rng(seed).standard_normal(shape).astype(np.float32) for seed in (0, 1)]
    x, y = (Var(name, checked_type=TensorType.of(data[0])) for name in "xy")
    return operators(plan_region(Function((x, y), make(x, y)), ISA))


def turned(x: Expr) -> Expr:
    return call("Transpose", x, perm=(0, 1, 3, 2))


def test_a_left_matrix_is_moved_before_if_its_rows_do_not_stay_together() -> None:
    assert kernels_of(lambda x, y: call("MatMul", turned(x), y)) == ["transpose", "matmul"]
    assert kernels_of(lambda x, y: call("MatMul", x, turned(y))) == ["transpose_matmul"]


def test_what_two_kernels_read_is_moved_once() -> None:
    def make(x: Expr, y: Expr) -> Expr:
        moved = turned(y)
        return call("Add", call("MatMul", x, moved), call("MatMul", call("Exp", x), moved))

    assert kernels_of(make)[0] == "transpose"


def test_what_is_computed_is_not_computed_again_for_each_panel() -> None:
    found = kernels_of(lambda x, y: call("MatMul", x, turned(call("Exp", y))))
    assert found == ["exp", "transpose_matmul"]


def test_a_product_by_one_matrix_stays_one_of_all_rows() -> None:
    weight = constant(np.random.default_rng(2).standard_normal((16, 8)))
    found = kernels_of(lambda x, _: call("MatMul", call("Transpose", x, perm=(0, 2, 1, 3)), weight))
    assert found == ["transpose", "matmul"]


@pytest.mark.parametrize(
    ("rows", "depth", "expected"),
    [
        (1, 32, ["transpose_matmul"]),  # along the sum
        (1, 31, ["transpose", "matmul"]),
        (2, 36, ["transpose_matmul"]),  # along the sum
        (2, 35, ["transpose_matmul"]),  # in panels
        (5, 7, ["transpose_matmul"]),
        (8, 31, ["transpose_matmul"]),
        (64, 31, ["transpose_matmul"]),
        (65, 31, ["transpose", "matmul"]),
    ],
)
@pytest.mark.parametrize("lead", [(), (3,)])
def test_products_by_one_turned_matrix(
    rows: int, depth: int, expected: list[str], lead: tuple[int, ...]
) -> None:
    shapes = ((*lead, rows, depth), (*lead, 50, depth))
    is_batch_of_many = bool(lead) and rows > 64
    data = [np.random.default_rng(place).standard_normal(shape) for place, shape in enumerate(shapes)]
    arrays = [array.astype(np.float32) for array in data]
    x, y = (Var(name, checked_type=TensorType.of(array)) for name, array in zip("xy", arrays, strict=True))
    order = (*range(len(lead)), len(lead) + 1, len(lead))
    plan = plan_region(Function((x, y), call("MatMul", x, call("Transpose", y, perm=order))), ISA)
    assert operators(plan) == (["transpose_matmul"] if is_batch_of_many else expected)
    (result,) = run_plan(plan, arrays, ISA)
    np.testing.assert_allclose(result, data[0] @ np.swapaxes(data[1], -1, -2), atol=1e-4)
    for kernel in plan.kernels:
        assert_matches_declared(kernel.dag, ISA, 2)


def test_the_rows_of_all_batches_count_where_one_matrix_multiplies_them() -> None:
    def kernels(rows: int, depth: int = 16) -> list[str]:
        x = Var("x", checked_type=TensorType((3, rows, depth), DType.FLOAT32))
        y = Var("y", checked_type=TensorType((50, depth), DType.FLOAT32))
        return operators(plan_region(Function((x, y), call("MatMul", x, call("Transpose", y))), ISA))

    assert kernels(21) == ["transpose_matmul"]
    assert kernels(22) == ["transpose", "matmul"]
    assert kernels(22, 22 * 3 * 18) == ["transpose_matmul"]  # along the sum
    assert kernels(22, 22 * 3 * 18 - 1) == ["transpose", "matmul"]


few, some = st.integers(1, 3), st.integers(1, 40)


@pytest.mark.slow
@settings(max_examples=examples(15), deadline=None)
@given(st.builds(Heads, st.integers(1, 2), some, some, few, some), st.sampled_from(sorted(MASKS)))
def test_random_sizes(sizes: Heads, mask: str) -> None:
    checked(sizes, MASKS[mask](sizes))
