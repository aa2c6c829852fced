"""Sums of products of bfloat16 numbers are those of the interpreter, in one instruction and by halves."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.emitted_kernels import compile_kernel, x86_sets
from tests.tir_checks import results

from intarsia.ir import DType, PrimFunc
from intarsia.ir.prim_func import Arith, ArithOp, Buffer, For, ForKind, Intrinsic, Load, LoopVar, Store
from intarsia.native.emission.emit import emit_llvm
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.named_cpus import NAMED_CPUS

Array = npt.NDArray[Any]
LANES = (1, 3, 4, 8, 16, 24, 32)


def _kernel(lanes: int, *, is_added: bool) -> PrimFunc:
    words = [Buffer(name, (lanes,), DType.INT32) for name in "ab"]
    sums = [Buffer(name, (lanes,), DType.FLOAT32) for name in "cd"]
    at = (LoopVar("i"),)
    value = Intrinsic("dot_bf16", tuple(Load(word, at) for word in words), DType.FLOAT32)
    stored = Arith(ArithOp.ADD, (Load(sums[0], at), value)) if is_added else value
    loop = For(LoopVar("i"), lanes, Store(sums[1], at, stored), ForKind.VECTORIZED)
    return PrimFunc((*words, *sums), loop)


def _arrays(lanes: int) -> list[Array]:
    random = np.random.default_rng(lanes)
    numbers = [random.standard_normal(2 * lanes).astype(DType.BFLOAT16.numpy) for _ in range(2)]
    start = random.standard_normal(lanes).astype(np.float32)
    return [*(half.view(np.int32) for half in numbers), start, np.zeros(lanes, np.float32)]


@pytest.mark.parametrize("is_added", [False, True])
@pytest.mark.parametrize("name", list(x86_sets()))
def test_sums_in_all_widths(name: str, is_added: bool) -> None:
    for lanes in LANES:
        function, arrays = _kernel(lanes, is_added=is_added), _arrays(lanes)
        expected = results(function, arrays)
        found = [array.copy() for array in arrays]
        compile_kernel(function, x86_sets()[name])(found)
        np.testing.assert_allclose(found[-1], expected[-1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("cpu", "instruction"), [("znver4", "dpbf16ps.512"), ("znver3", "fmul"), ("neoverse-n1", "fmul")]
)
def test_the_instruction_is_used_where_the_machine_has_it(cpu: str, instruction: str) -> None:
    isa: Isa = NAMED_CPUS[cpu]
    text = emit_llvm(_kernel(16, is_added=True), "kernel", isa).text
    assert instruction in text
    assert ("dpbf16ps" in text) == isa.has_bf16_dot


@pytest.mark.parametrize("name", list(x86_sets()))
def test_pairs_in_all_widths(name: str) -> None:
    """Numbers that are halfway between two bfloat16 numbers, too large for them, infinite and no number."""
    special = [1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 2.0**-8, 3.4e38, -np.inf, np.inf, 0.0, -0.0]
    for lanes in LANES:
        numbers = [Buffer(letter, (lanes,), DType.FLOAT32) for letter in "ab"]
        words, at = Buffer("c", (lanes,), DType.INT32), (LoopVar("i"),)
        value = Intrinsic("pair_bf16", tuple(Load(number, at) for number in numbers), DType.INT32)
        function = PrimFunc(
            (*numbers, words), For(LoopVar("i"), lanes, Store(words, at, value), ForKind.VECTORIZED)
        )
        low = np.resize(np.asarray(special, np.float32), lanes)
        arrays = [low, np.random.default_rng(lanes).standard_normal(lanes).astype(np.float32)]
        arrays.append(np.zeros(lanes, np.int32))
        expected = results(function, arrays)
        found = [array.copy() for array in arrays]
        compile_kernel(function, x86_sets()[name])(found)
        np.testing.assert_array_equal(found[-1], expected[-1])
        halves = np.stack(arrays[:2], 1).astype(DType.BFLOAT16.numpy)
        np.testing.assert_array_equal(found[-1].view(DType.BFLOAT16.numpy), halves.reshape(-1))
        unordered = _numbers_of_nan(function, name, lanes)
        assert np.isnan(unordered).all()


def _numbers_of_nan(function: PrimFunc, name: str, lanes: int) -> Array:
    """The numbers of words of NaN."""
    found = [np.full(lanes, np.nan, np.float32)] * 2 + [np.zeros(lanes, np.int32)]
    compile_kernel(function, x86_sets()[name])(found)
    numbers: Array = found[-1].view(DType.BFLOAT16.numpy).astype(np.float32)
    return numbers
