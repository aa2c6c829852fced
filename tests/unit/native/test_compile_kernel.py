"""Loop functions compiled, kept, loaded and run by the threads of a pool."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.loop_programs import matmul, scale

from intarsia.ir import DType, PrimFunc
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    For,
    ForKind,
    Literal,
    Load,
    LoopVar,
    MemoryScope,
    Store,
)
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import CodegenOptions, IrPasses
from intarsia.native.object_code.kernel_cache import SYMBOL
from intarsia.native.tir.interpret import interpret
from intarsia.support.errors import ArtifactError, ExecutionError

F32 = DType.FLOAT32


def rows_through_scratch() -> PrimFunc:
    """The rows of x reversed, through a copy in scratch memory of the thread."""
    rows, columns = 37, 3000
    x, y = Buffer("x", (rows, columns), F32), Buffer("y", (rows, columns), F32)
    copy = Buffer("copy", (columns,), F32, MemoryScope.THREAD)
    i, j = LoopVar("i"), LoopVar("j")
    mirrored = Arith(ArithOp.SUB, (Literal(columns - 1, DType.INT64), j))
    body = Allocate(
        copy,
        Block(
            (
                For(j, columns, Store(copy, (j,), Load(x, (i, j)))),
                For(j, columns, Store(y, (i, mirrored), Load(copy, (j,)))),
            )
        ),
    )
    return PrimFunc((x, y), For(i, rows, body, ForKind.PARALLEL))


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("passes", list(IrPasses))
def test_threads_compute_what_the_interpreter_does(threads: int, passes: IrPasses) -> None:
    rng = np.random.default_rng(0)
    with ThreadPool(threads) as pool:
        for function in (scale(), matmul()):
            arrays = [rng.standard_normal(param.shape).astype(np.float32) for param in function.params]
            expected = [array.copy() for array in arrays]
            interpret(function, expected)
            compile_kernel(function, Isa.host(), CodegenOptions(passes)).load()(*arrays, pool=pool)
            np.testing.assert_allclose(arrays[-1], expected[-1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_scratch_belongs_to_one_thread(threads: int) -> None:
    kernel = compile_kernel(rows_through_scratch(), Isa.host())
    assert kernel.scratch_bytes >= 12000
    reverse = kernel.load()
    x = np.arange(37 * 3000, dtype=np.float32).reshape(37, 3000)
    with ThreadPool(threads) as pool:
        for _ in range(50):
            y = np.zeros_like(x)
            reverse(x, y, pool=pool)
            np.testing.assert_array_equal(y, x[:, ::-1])


def test_bounds_checks_name_the_access() -> None:
    x, y = Buffer("x", (4,), F32), Buffer("y", (4,), F32)
    i = LoopVar("i")
    ahead = Arith(ArithOp.ADD, (i, Literal(1, DType.INT64)))
    function = PrimFunc((x, y), For(i, 4, Store(y, (i,), Load(x, (ahead,)))))
    kernel = compile_kernel(function, Isa.host(), bounds_checked=True).load()
    arrays = np.zeros(4, np.float32), np.zeros(4, np.float32)
    with pytest.raises(ExecutionError) as caught:
        kernel(*arrays)
    assert str(caught.value) == (
        f"native kernel {SYMBOL!r}: index 4 is out of bounds: "
        "dimension 0 of 'x', which is read, has 4 elements"
    )


def test_code_that_does_not_run_here_is_not_loaded() -> None:
    kernel = compile_kernel(matmul(), Isa.host())
    foreign = replace(kernel, isa=replace(kernel.isa, features=(*kernel.isa.features, "avx4096")))
    with pytest.raises(ArtifactError, match="does not run here: this machine has no avx4096"):
        foreign.load()
