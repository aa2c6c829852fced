"""Kernels for any number of items compute for each what those for one compute, on each level of proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.gpu_on_cpu.kernel_checks import assert_close, interpreted, on_this_cpu, whole_numbers
from tests.gpu_on_cpu.program_dags import dags_of
from tests.gpu_on_cpu.ptxas_checks import assert_text_resources, needs_ptxas
from tests.tir_checks import in_module

from intarsia.ir import PrimFunc
from intarsia.ir.parser import parse_module
from intarsia.ir.prim_func import Block, For, IfThenElse, Statement
from intarsia.ir.verify import verify
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.gpu.generate_ptx import MODELS
from intarsia.native.gpu.kernels_of_items import (
    ROWS_OF_TILE,
    KernelsOfItems,
    Tiling,
    kernels_of_items,
    repeat_kernels,
)
from intarsia.native.lowering import lower_naive
from intarsia.native.tir import SplitAtBarriers
from intarsia.native.tir.rewriting import with_kernels
from intarsia.runtime.kernel import Array
from intarsia.support.errors import IntarsiaError, VerifyError

QUICK = {("chain", 67), ("product", 7), ("softmax", 1), ("product", 0)}
NUMBERS = (0, 1, 7, ROWS_OF_TILE, 67, 131)
PROGRAMS = {
    "chain": "def @main(%x: Tensor[(1, 9), float32]) { Relu(Add(Mul(%x, %x), float32(1.5))) }",
    "product": (
        "def @main(%x: Tensor[(1, 21), float32], %w: Tensor[(21, 10), float32]) { Relu(MatMul(%x, %w)) }"
    ),
    "product of float16": (
        "def @main(%x: Tensor[(1, 24), float16], %w: Tensor[(24, 16), float16]) { Relu(MatMul(%x, %w)) }"
    ),
    "softmax": "def @main(%x: Tensor[(1, 37), float32]) { Softmax(%x, axis=-1) }",
    "layer norm": (
        "def @main(%x: Tensor[(1, 40), float32], %s: Tensor[(40,), float32]) "
        "{ LayerNormalization(%x, %s, axis=-1) }"
    ),
    "convolution": (
        "def @main(%x: Tensor[(1, 3, 5, 5), float32], %w: Tensor[(4, 3, 3, 3), float32]) { Conv(%x, %w) }"
    ),
}
TILED = {"chain", "product", "product of float16"}


def dag_of(name: str) -> ComputeDAG:
    (dag,) = dags_of(PROGRAMS[name])
    return dag


def carrying_of(dag: ComputeDAG) -> set[str]:
    """The placeholders with items: those of programs here have a first axis of extent 1."""
    return {tensor.op.name for tensor in dag.placeholders if tensor.shape[:1] == (1,)}


def inputs_of(dag: ComputeDAG, kernels: KernelsOfItems, items: int) -> dict[str, Array]:
    """Whole numbers for all parameters of kernels for some items that are no results."""
    results = {tensor.buffer.name for tensor in dag.outputs}
    *params, number = kernels.function.params
    rng = np.random.default_rng(items)
    given = {
        param.name: rng.integers(-3, 4, param.shape).astype(param.dtype.numpy)
        for param in params
        if param.name not in results
    }
    return {**given, number.name: np.full((), items, np.int64)}


def expected_of(dag: ComputeDAG, inputs: Mapping[str, Array], items: int) -> dict[str, Array]:
    """What the loops as declared write, item by item."""
    function = lower_naive(dag.outputs)
    like, carrying = whole_numbers(dag), carrying_of(dag)
    names = {tensor.buffer.name: tensor.op.name for tensor in dag.placeholders}
    written: dict[str, list[Array]] = {tensor.buffer.name: [] for tensor in dag.outputs}
    for item in range(items):
        one = {
            name: inputs[name].reshape((items, *array.shape))[item]
            if names[name] in carrying
            else inputs[name]
            for name, array in like.items()
        }
        for name, array in interpreted(function, one).items():
            written[name].append(array)
    return {name: np.stack(arrays) for name, arrays in written.items() if arrays}


def reshaped(results: Mapping[str, Array], expected: Mapping[str, Array]) -> dict[str, Array]:
    return {name: results[name].reshape(array.shape) for name, array in expected.items()}


def check(dag: ComputeDAG, items: int, *, is_compiled: bool = True) -> KernelsOfItems:
    """Fail unless kernels for any number of items write what the loops for one write for each."""
    kernels = kernels_of_items(dag, carrying_of(dag), items)
    module = in_module(kernels.function)
    verify(module)
    assert str(parse_module(str(module))) == str(module)
    inputs = inputs_of(dag, kernels, items)
    expected = expected_of(dag, inputs, items)
    split = SplitAtBarriers()(module)
    verify(split)
    found = [interpreted(kernels.function, inputs), interpreted(split.prim_func("f"), inputs)]
    if is_compiled:
        found += [on_this_cpu(kernels.function, inputs, is_descending=down) for down in (False, True)]
    for results in found:
        assert_close(reshaped(results, expected), expected)
    return kernels


@pytest.mark.parametrize(
    ("name", "items"),
    [
        pytest.param(name, items, marks=() if (name, items) in QUICK else pytest.mark.slow)
        for name in PROGRAMS
        for items in NUMBERS
    ],
)
def test_each_item_is_computed_by_itself(name: str, items: int) -> None:
    kernels = check(dag_of(name), items)
    assert kernels.tiling == (Tiling(1, ROWS_OF_TILE) if name in TILED else Tiling())


@pytest.mark.slow
@settings(max_examples=examples(2), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(2, 12), st.integers(2, 12), st.integers(0, 70), st.booleans())
def test_any_product_of_any_number_of_rows_is_computed(
    inner: int, columns: int, items: int, has_softmax: bool
) -> None:
    body = "Softmax(MatMul(%x, %w), axis=-1)" if has_softmax else "Add(MatMul(%x, %w), %b)"
    program = (
        f"def @main(%x: Tensor[(1, {inner}), float32], %w: Tensor[({inner}, {columns}), float32], "
        f"%b: Tensor[({columns},), float32]) {{ {body} }}"
    )
    for dag in dags_of(program):
        check(dag, items, is_compiled=False)


def test_the_number_of_blocks_is_computed_at_the_launch() -> None:
    dag = dag_of("product")
    kernels = kernels_of_items(dag, carrying_of(dag))
    (launch,) = emit_kernels(kernels.function, "k", "sm_80").launches
    assert launch.is_counted
    assert kernels.function.params[-1].name in launch.arguments


EXCHANGE = """
def prim @f(x: Buffer[(1, 8), float32], y: Buffer[(1, 8), float32]) {
  alloc t: Buffer[(8,), float32] {
    for block b in 2 {
      for thread i in 4 {
        t[b * 4 + i] = x[0, b * 4 + i];
      }
    }
    for block b in 2 {
      for thread i in 4 {
        y[0, b * 4 + i] = t[7 - (b * 4 + i)];
      }
    }
  }
}
"""


@pytest.mark.parametrize("items", [0, 1, 5])
def test_what_kernels_exchange_has_memory_for_each_item(items: int) -> None:
    function = parse_module(EXCHANGE).prim_func("f")
    kernels = repeat_kernels(function, {"x", "y"}, Tiling(), items)
    assert kernels.per_tile == {"t"}
    verify(in_module(kernels.function))
    x = np.arange(8 * items, dtype=np.float32).reshape(items, 1, 8)
    inputs: dict[str, Array] = {"x": x, "items": np.full((), items, np.int64)}
    expected = {"y": x[:, :, ::-1]}
    assert_close(interpreted(kernels.function, inputs), expected)
    assert_close(on_this_cpu(kernels.function, inputs, is_descending=True), expected)


def test_long_rows_are_shared_by_several_kernels() -> None:
    (dag,) = dags_of("def @main(%x: Tensor[(1, 40000), float32]) { Softmax(%x, axis=-1) }")
    assert kernels_of_items(dag, carrying_of(dag)).per_tile


def test_kernels_without_items_stay_as_they_are() -> None:
    function = parse_module(EXCHANGE).prim_func("f")
    assert not repeat_kernels(function, {"y"}, Tiling(), 3).per_tile


def without_guards(statement: Statement) -> Statement:
    match statement:
        case Block():
            return Block(tuple(map(without_guards, statement.statements)))
        case For():
            return replace(statement, body=without_guards(statement.body))
        case IfThenElse(otherwise=None):
            return statement.then
        case _:
            return statement


def test_a_missing_guard_is_found() -> None:
    """Rows behind the last one are computed from that, so they would be written as that: a race, or twice."""
    dag = dag_of("chain")
    kernels = kernels_of_items(dag, carrying_of(dag), 67)
    broken = with_kernels(kernels.function, without_guards)
    with pytest.raises(IntarsiaError, match="race"):
        interpreted(broken, inputs_of(dag, kernels, 67))


def with_changed_arithmetic(function: PrimFunc, old: str, new: str) -> PrimFunc:
    text = str(in_module(function))
    assert old in text
    return parse_module(text.replace(old, new)).prim_func("f")


def test_a_read_behind_the_last_row_is_found() -> None:
    dag = dag_of("product")
    kernels = kernels_of_items(dag, carrying_of(dag), 67)
    broken = with_changed_arithmetic(kernels.function, "items[] - 1", "items[] + 7")
    with pytest.raises(IntarsiaError, match="expected 0 to 66"):
        interpreted(broken, inputs_of(dag, kernels, 67))


def test_a_grid_without_its_last_tile_is_found() -> None:
    dag = dag_of("product")
    kernels = kernels_of_items(dag, carrying_of(dag), 67)
    inputs = inputs_of(dag, kernels, 67)
    broken = with_changed_arithmetic(kernels.function, "items[] + 63", "items[] + 0")
    expected = expected_of(dag, inputs, 67)
    with pytest.raises(AssertionError):
        assert_close(reshaped(interpreted(broken, inputs), expected), expected)


def test_the_number_of_threads_is_no_count() -> None:
    text = """
    def prim @f(n: Buffer[(), int64], x: Buffer[(4, 8), float32]) {
      for block b in 4 {
        for thread t in 8 count n[] {
          x[b, t] = 1.0f32;
        }
      }
    }
    """
    with pytest.raises(
        VerifyError, match="a loop with a count is thread; expected serial, parallel or block"
    ):
        verify(parse_module(text))


@needs_ptxas
@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_need_few_registers_and_spill_none(name: str, model: str) -> None:
    dag = dag_of(name)
    kernels = emit_kernels(kernels_of_items(dag, carrying_of(dag)).function, "k", model)
    resources = assert_text_resources(kernels.text, model, 96)
    assert {each.name for each in resources} == {launch.name for launch in kernels.launches}
