"""Sums of products of 16-bit numbers are those of the interpreter, in one instruction and by two products."""

from __future__ import annotations

import numpy as np
import pytest
from tests.emitted_kernels import compile_kernel, x86_sets
from tests.tir_checks import results

from intarsia.ir import DType, PrimFunc
from intarsia.ir.prim_func import Arith, ArithOp, Buffer, For, ForKind, Intrinsic, Load, LoopVar, Store
from intarsia.native.emission.emit import emit_llvm
from intarsia.native.machine.named_cpus import NAMED_CPUS

LANES = (1, 3, 4, 8, 16, 24, 32)
EDGES = (-(2**15), 2**15 - 1, -1, 0, 255)


def _kernel(lanes: int, *, is_added: bool) -> PrimFunc:
    words = [Buffer(name, (lanes,), DType.INT32) for name in "abcd"]
    at = (LoopVar("i"),)
    value = Intrinsic("dot_s16", tuple(Load(word, at) for word in words[:2]), DType.INT32)
    stored = Arith(ArithOp.ADD, (Load(words[2], at), value)) if is_added else value
    return PrimFunc(tuple(words), For(LoopVar("i"), lanes, Store(words[3], at, stored), ForKind.VECTORIZED))


@pytest.mark.parametrize("is_added", [False, True])
@pytest.mark.parametrize("name", list(x86_sets()))
def test_sums_in_all_widths(name: str, is_added: bool) -> None:
    """Among the numbers are the least ones, whose products wrap around."""
    for lanes in LANES:
        random = np.random.default_rng(lanes)
        halves = [random.choice(EDGES, 2 * lanes).astype(np.int16) for _ in range(2)]
        halves[0][:2] = halves[1][:2] = EDGES[0]
        arrays = [half.view(np.int32) for half in halves]
        arrays += [random.integers(-(2**31), 2**31, lanes).astype(np.int32), np.zeros(lanes, np.int32)]
        function = _kernel(lanes, is_added=is_added)
        expected, actual = results(function, arrays), [array.copy() for array in arrays]
        compile_kernel(function, x86_sets()[name])(actual)
        np.testing.assert_array_equal(actual[-1], expected[-1])
        first, second = (half.astype(np.int64).reshape(-1, 2) for half in halves)
        exact = (first * second).sum(1) + (arrays[2] if is_added else 0)
        np.testing.assert_array_equal(actual[-1], exact.astype(np.int32))


@pytest.mark.parametrize(
    ("cpu", "instruction"), [("znver4", "pmaddw.d.512"), ("znver3", "pmadd.wd"), ("neoverse-n1", "mul")]
)
def test_the_instruction_is_used_where_the_machine_has_it(cpu: str, instruction: str) -> None:
    text = emit_llvm(_kernel(16, is_added=True), "kernel", NAMED_CPUS[cpu]).text
    assert instruction in text
    assert ("pmadd" in text) == (NAMED_CPUS[cpu].architecture == "x86_64")
