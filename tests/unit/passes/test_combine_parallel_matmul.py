"""Parallel matrix products become one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.model_gates import model_gate
from tests.parallel_programs import constant, image, products, program
from tests.pass_checks import (
    assert_facts_kept,
    assert_same_results,
    checked,
    operator_counts,
)

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.ir import (
    Constant,
    DType,
    Expr,
    Function,
    If,
    IRModule,
    SymbolicDim,
    TensorType,
    Var,
)
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import run_arrays
from intarsia.op import call, verify
from intarsia.passes import CombineParallelMatMul, partition_whole

pytestmark = pytest.mark.quick_tests(16, also=["test_what_is_not_alike_is_left_alone[biases_per_row]"])

COMBINE = CombineParallelMatMul()
COLUMNS = (2, 3, 4)


@pytest.mark.parametrize("dims", [(4,), (5, 4), (2, 3, 4), (2, 1, 3, 4)])
def test_products_of_any_rank(dims: tuple[int, ...]) -> None:
    x = image(*dims)
    after = checked(COMBINE, program(x, *products(x)))
    assert operator_counts(after) == {"MatMul": 1, "Split": 1}


@pytest.mark.parametrize("dims", [(4,), (5, 4), (2, 5, 4)])
def test_batches_of_matrices(dims: tuple[int, ...]) -> None:
    x = image(*dims)
    results = [call("MatMul", x, constant(2, 4, count, seed=count)) for count in COLUMNS]
    assert operator_counts(checked(COMBINE, program(x, *results))) == {"MatMul": 1, "Split": 1}


def test_two_are_not_worth_it() -> None:
    x = image(5, 4)
    before = program(x, *products(x, (2, 3)))
    assert COMBINE(before) is before


def other_batches(x: Expr) -> list[Expr]:
    return [call("MatMul", x, constant(batch, 4, 3)) for batch in (1, 2, 3)]


def right_operand(x: Expr) -> list[Expr]:
    return [call("MatMul", constant(count, 5), x) for count in COLUMNS]


def vectors(x: Expr) -> list[Expr]:
    return [call("MatMul", x, constant(4, seed=i)) for i in range(3)]


def not_constant(x: Expr) -> list[Expr]:
    return [call("MatMul", x, call("Transpose", call(name, x))) for name in ("Neg", "Abs", "Relu")]


def both_operators(x: Expr) -> list[Expr]:
    return [*products(x, (2, 3)), call("Gemm", x, constant(4, 3))]


def other_factors(x: Expr) -> list[Expr]:
    return [call("Gemm", x, constant(4, 3), alpha=float(i)) for i in range(3)]


def biases_per_row(x: Expr) -> list[Expr]:
    return [call("Gemm", x, constant(4, 3), constant(5, 1, seed=i)) for i in range(3)]


@pytest.mark.parametrize(
    "write",
    [other_batches, right_operand, vectors, not_constant, both_operators, other_factors, biases_per_row],
)
def test_what_is_not_alike_is_left_alone(write: Callable[[Expr], list[Expr]]) -> None:
    x = image(5, 4)
    before = program(x, *write(x))
    assert COMBINE(before) is before


@pytest.mark.parametrize("attrs", [{}, {"alpha": 0.5, "beta": 2.0}, {"transA": 1}, {"transB": 1}], ids=str)
def test_gemm(attrs: dict[str, Any]) -> None:
    x = image(*((4, 5) if "transA" in attrs else (5, 4)))
    biases = [constant(2), constant(1, 3), constant(), None, constant(1, 1)]
    results = []
    for i, (count, bias) in enumerate(zip((2, 3, 4, 2, 1), biases, strict=True)):
        shape = (count, 4) if "transB" in attrs else (4, count)
        args = (constant(*shape, seed=i), *(() if bias is None else (bias,)))
        results.append(call("Gemm", x, *args, **attrs))
    assert operator_counts(checked(COMBINE, program(x, *results))) == {"Gemm": 1, "Split": 1}


def test_integers() -> None:
    x = image(5, 4, dtype=DType.INT32)
    weights = [np.arange(4 * count, dtype=np.int32).reshape(4, count) for count in COLUMNS]
    before = program(x, *(call("MatMul", x, Constant(weight)) for weight in weights))
    assert operator_counts(checked(COMBINE, before)) == {"MatMul": 1, "Split": 1}


Follow = Callable[[Expr, int, int], Expr]


def bias(product: Expr, count: int, i: int) -> Expr:
    return call("Add", product, constant(count, seed=i))


def bias_with_axes(product: Expr, count: int, i: int) -> Expr:
    return call("Add", constant(1, count, seed=i), product)


def gelu(product: Expr, count: int, i: int) -> Expr:
    return call("Gelu", bias(product, count, i))


def per_row(product: Expr, _count: int, i: int) -> Expr:
    return call("Add", product, constant(5, 1, seed=i))


def batch_norm(product: Expr, count: int, i: int) -> Expr:
    return call("BatchNormalization", product, *(constant(count, seed=10 * i + j) for j in range(4)))


def following(follow: Follow) -> IRModule:
    x = image(5, 4)
    return program(x, *(follow(y, COLUMNS[i], i) for i, y in enumerate(products(x))))


@pytest.mark.parametrize("follow", [bias, bias_with_axes, gelu])
def test_what_follows_is_combined_too(follow: Follow) -> None:
    before = following(follow)
    expected = {name: count // 3 for name, count in operator_counts(before).items()}
    assert operator_counts(checked(COMBINE, before)) == {**expected, "Split": 1}


@pytest.mark.parametrize("follow", [per_row, batch_norm])
def test_what_differs_comes_after_the_split(follow: Follow) -> None:
    before = following(follow)
    assert operator_counts(checked(COMBINE, before)) == {**operator_counts(before), "MatMul": 1, "Split": 1}


def test_some_biases_are_missing() -> None:
    x = image(5, 4)
    query, key, value = products(x)
    before = program(x, bias(query, 2, 0), key, bias(value, 4, 2))
    assert operator_counts(checked(COMBINE, before)) == {"MatMul": 1, "Split": 1, "Add": 2}


def test_an_unknown_rank() -> None:
    x = Var("x", checked_type=TensorType(None, DType.FLOAT32))
    before = program(x, *(bias(y, COLUMNS[i], i) for i, y in enumerate(products(x))))
    after = COMBINE(before)
    verify(after)
    assert operator_counts(after) == {"MatMul": 1, "Add": 1, "Split": 1}
    for dims in ((4,), (2, 3, 4)):
        assert_same_results(
            before, after, {"x": np.linspace(0, 1, np.prod(dims), dtype=np.float32).reshape(dims)}
        )


def test_symbolic_dimensions_and_branches() -> None:
    x = Var("x", checked_type=TensorType((SymbolicDim("N"), 4), DType.FLOAT32))
    flag = Var("flag", checked_type=TensorType((), DType.BOOL))
    total = call("Concat", *products(x), axis=1)
    other = call("Concat", *products(call("Neg", x)), axis=1)
    body = If(flag, total, other, checked_type=total.checked_type)
    before = IRModule.from_expr(Function((x, flag), body))
    after = COMBINE(before)
    verify(after)
    assert operator_counts(after)["MatMul"] == 2
    assert after["main"].result_type == before["main"].result_type
    for value in (True, False):
        inputs = {"x": np.ones((3, 4), np.float32), "flag": np.array(value)}
        assert_same_results(before, after, inputs)


def test_spans_and_devices_are_kept() -> None:
    assert_facts_kept(COMBINE, following(gelu))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "name",
    [
        "bert_tiny",
        "gpt2_tiny",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("bert_base", "gpt2")),
    ],
)
def test_transformers(name: str) -> None:
    module = ia.from_onnx(build_model(name))
    combine = CombineParallelMatMul(2)
    after = combine(module)
    verify(after)
    if name.startswith("bert"):
        assert operator_counts(after)["MatMul"] < operator_counts(module)["MatMul"]
    assert combine(after) is after
    inputs = random_inputs(module["main"])
    gate = model_gate(name, module, inputs)
    built = ia.build(partition_whole(after, ia.Target.for_toolchain("onnxruntime")))
    report = gate.check(run_arrays(built, inputs))
    assert report.passed, report.message
