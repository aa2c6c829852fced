"""How a program's time divides, as guessed from sizes."""

from __future__ import annotations

import pytest
from tests.collage_programs import calls, main_graph, program

from intarsia.collage.costs.work_shares import MULTIPLY_ADDS_PER_BYTE, value_bytes, work_shares
from intarsia.ir import DType, FuncType, SymbolicDim, TensorType, TupleType

F32 = TensorType((2, 3), DType.FLOAT32)


def test_bytes_of_values() -> None:
    assert value_bytes(F32) == 24
    assert value_bytes(TensorType((), DType.FLOAT16)) == 2
    assert value_bytes(TensorType((0, 5), DType.INT64)) == 0
    assert value_bytes(TupleType((F32, TupleType((F32, TensorType((), DType.BOOL)))))) == 49
    assert value_bytes(TensorType((SymbolicDim("n"), 3), DType.FLOAT32)) == 12
    assert value_bytes(TensorType(None, DType.FLOAT32)) == 0
    assert value_bytes(None) == 0
    assert value_bytes(FuncType((F32,), F32)) == 0


def test_shares_add_up_to_one() -> None:
    graph = main_graph(program("def @main(%x: T) { %0 = Relu(%x); (Add(%0, Abs(%0)), %0) }"))
    shares = work_shares(graph)
    assert sorted(shares) == calls(graph)
    assert sum(shares.values()) == pytest.approx(1)
    relu, abs_, add = (shares[index] for index in calls(graph))
    assert relu == abs_
    assert add / relu == pytest.approx((1 + 24) / (1 + 16))


def test_convolutions_count_by_their_multiply_adds() -> None:
    types = "%x: Tensor[(1, 8, 10, 10), float32], %w: Tensor[(8, 8, 3, 3), float32]"
    graph = main_graph(program(f"def @main({types}) {{ Relu(Conv(%x, %w, pads=[1, 1, 1, 1])) }}"))
    conv, relu = (work_shares(graph)[index] for index in calls(graph))
    # Of three taps at ten positions two read padding, in each dimension.
    multiply_adds, values, weights = 8 * 8 * 28 * 28, 8 * 100 * 4, 8 * 8 * 9 * 4
    expected = 1 + multiply_adds / MULTIPLY_ADDS_PER_BYTE + 2 * values + weights
    assert conv / relu == pytest.approx(expected / (1 + 2 * values))


def test_calls_of_no_toolchain_have_no_share() -> None:
    graph = main_graph(program("def @main(%x: T) { @other((%x, %x).0) } def @other(%x: T) { Relu(%x) }"))
    assert work_shares(graph) == {}


def test_inside_of_branches_and_bodies_is_counted() -> None:
    text = "def @main(%x: T, %f: Tensor[(), bool]) { if (%f) { Relu(%x) } else { let %v: T = Abs(%x); %v } }"
    graph = main_graph(program(text))
    assert sorted(work_shares(graph)) == calls(graph)
    assert len(calls(graph)) == 2
