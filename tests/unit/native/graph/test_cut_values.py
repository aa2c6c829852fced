"""Slices that are read where they are, and those that are not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.native.graph.run_plan import run_plan
from tests.unit.native.graph.test_plan_region import ISA, operators, planned

X = np.random.default_rng(0).standard_normal((6, 4, 16)).astype(np.float32)
HEAD = "def @main(%x: Tensor[(6, 4, 16), float32])"


def bounds(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers, np.int64)


@pytest.mark.parametrize(("begin", "end"), [(0, 1), (2, 5), (-2, 6), (1, 100)])
def test_a_piece_of_the_first_axis_needs_no_kernel(begin: int, end: int) -> None:
    text = f"{HEAD} {{ Softmax(Slice(Exp(%x), meta[Constant][0], meta[Constant][1], meta[Constant][2])) }}"
    plan = planned(text, bounds(begin), bounds(end), bounds(0))
    assert operators(plan) == ["exp", "softmax"]
    (found,) = run_plan(plan, [X], ISA)
    weights = np.exp(np.exp(X)[begin:end])
    np.testing.assert_allclose(found, weights / weights.sum(-1, keepdims=True), rtol=1e-5)


def test_pieces_of_pieces_lie_in_the_whole() -> None:
    plan = planned(
        f"""{HEAD} {{
          %all = Exp(%x);
          %two = Slice(%all, meta[Constant][1], meta[Constant][3], meta[Constant][0]);
          %one = Slice(%two, meta[Constant][1], meta[Constant][2], meta[Constant][0]);
          %half = Slice(%one, meta[Constant][2], meta[Constant][4], meta[Constant][1]);
          Softmax(%half)
        }}""",
        *(bounds(number) for number in (0, 1, 2, 3, 4)),
    )
    assert operators(plan) == ["exp", "softmax"]
    (found,) = run_plan(plan, [X], ISA)
    weights = np.exp(np.exp(X[2:3, 2:4]))
    np.testing.assert_allclose(found, weights / weights.sum(-1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(
    ("source", "begin", "end", "axis", "step"),
    [("Exp(%x)", 1, 3, 1, 1), ("Exp(%x)", 0, 6, 0, 2), ("%x", 1, 3, 0, 1)],
    ids=["inner axis", "every second", "parameter"],
)
def test_other_slices_are_read_by_kernels(source: str, begin: int, end: int, axis: int, step: int) -> None:
    text = f"""{HEAD} {{
      Softmax(Slice({source}, meta[Constant][0], meta[Constant][1], meta[Constant][2], meta[Constant][3]))
    }}"""
    plan = planned(text, bounds(begin), bounds(end), bounds(axis), bounds(step))
    assert "slice" in "".join(operators(plan))
    (found,) = run_plan(plan, [X], ISA)
    taken = [slice(None)] * 3
    taken[axis] = slice(begin, end, step)
    weights = np.exp((X if source == "%x" else np.exp(X))[tuple(taken)])
    np.testing.assert_allclose(found, weights / weights.sum(-1, keepdims=True), rtol=1e-5)


def test_a_piece_that_vectors_would_not_meet_is_copied() -> None:
    x = np.linspace(-1, 1, 30, dtype=np.float32).reshape(6, 5)
    text = """def @main(%x: Tensor[(6, 5), float32]) {
      Softmax(Slice(Softmax(%x), meta[Constant][0], meta[Constant][1], meta[Constant][2]))
    }"""
    plan = planned(text, bounds(1), bounds(3), bounds(0))
    assert "slice" in "".join(operators(plan))
    (found,) = run_plan(plan, [x], ISA)
    assert found.shape == (2, 5)


def test_results_are_not_pieces_and_parts_of_a_concat_are_written() -> None:
    plan = planned(
        f"""{HEAD} {{
          %all = Exp(%x);
          %low = Slice(%all, meta[Constant][0], meta[Constant][1], meta[Constant][0]);
          %high = Slice(%all, meta[Constant][2], meta[Constant][3], meta[Constant][0]);
          (%low, Softmax(Concat(%high, Neg(%low), axis=0)))
        }}""",
        *(bounds(number) for number in (0, 2, 3, 5)),
    )
    low, soft = run_plan(plan, [X], ISA)
    np.testing.assert_allclose(low, np.exp(X[:2]), rtol=1e-6)
    weights = np.exp(np.concatenate([np.exp(X[3:5]), -np.exp(X[:2])]))
    np.testing.assert_allclose(soft, weights / weights.sum(-1, keepdims=True), rtol=1e-5)
