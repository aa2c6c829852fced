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
