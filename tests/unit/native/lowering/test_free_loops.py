"""Independent loops as blocks and threads: which ones are, and that the result stays the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.tir_checks import in_module

from intarsia.ir import PrimFunc, with_prim_func_fields
from intarsia.ir.parser import parse_module
from intarsia.ir.verify import verify
from intarsia.native.gpu.kernel_list import list_kernels
from intarsia.native.lowering.free_loops import kernel_nests
from intarsia.native.lowering.thread_sharing import as_kernels
from intarsia.native.tir import interpret

HEAD = "def prim @f(x: Buffer[(6, 40), float32], y: Buffer[(6, 40), float32])"
SUMS = "for s in 5 { for vectorized i in 40 { y[s + 1, i] = y[s, i] + x[s + 1, i]; } }"
IN_REGISTERS = (
    "alloc r: Buffer[(40,), float32, register] { "
    "for vectorized i in 40 { r[i] = x[0, i]; y[0, i] = x[0, i]; } "
    "for s in 5 { for vectorized i in 40 { r[i] = r[i] + x[s + 1, i]; y[s + 1, i] = r[i]; } } }"
)


def function_of(body: str) -> PrimFunc:
    return parse_module(f"{HEAD} {{ {body} }}").prim_func("f")


def grids(function: PrimFunc) -> list[tuple[int, int]]:
    kernels = list_kernels(function).kernels
    return [(kernel.block_loop.extent, kernel.thread_loop.extent) for kernel in kernels]


def with_kernels(function: PrimFunc) -> PrimFunc:
    after = with_prim_func_fields(function, body=as_kernels(function.body))
    verify(in_module(after))
    return after


def run(function: PrimFunc) -> np.ndarray:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, (6, 40)).astype(np.float32) for _ in range(2))
    interpret(function, [x, y])
    return y


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i in 6 { for j in 40 { y[i, j] = x[i, j] * 2.0f32; } }", [(8, 32)]),
        ("for i in 6 { y[i, 0] = x[i, 0]; for s in 39 { y[i, s + 1] = y[i, s] + x[i, s + 1]; } }", [(1, 32)]),
        (SUMS, [(2, 32)]),
        (f"for vectorized i in 40 {{ y[0, i] = x[0, i]; }} {SUMS}", [(2, 32)]),
        (IN_REGISTERS, [(2, 32)]),
        ("for s in 5 { for i in 40 { y[s + 1, i] = y[s, 39 - i] + x[s + 1, i]; } }", [(1, 1)]),
        ("for i in 6 { for j in 40 { y[0, 0] = y[0, 0] + x[i, j]; } }", [(1, 1)]),
        ("for u in 6 { for j in 40 { y[int64(x[u, 0]) * 0, j] = x[u, j]; } }", [(2, 32)]),
        ("y[0, 0] = 1.0f32; for i in 6 { for j in 40 { y[i, j] = x[i, j]; } }", [(1, 1), (8, 32)]),
        ("for b in 5 { for unrolled r in 8 { y[0, b * 8 + r] = x[1, b * 8 + r]; } }", [(2, 32)]),
        ("for b in 5 { for unrolled r in 9 { y[0, b * 7 + r] = x[b, b * 7 + r]; } }", [(1, 1)]),
    ],
)
def test_independent_loops_are_threads(body: str, expected: list[tuple[int, int]]) -> None:
    function = function_of(body)
    kernels = with_kernels(function)
    assert grids(kernels) == expected
    np.testing.assert_array_equal(run(kernels), run(function))


def test_loops_that_are_bound_stay() -> None:
    function = function_of("for block b in 6 { for thread t in 40 { y[b, t] = x[b, t]; } }")
    assert kernel_nests(function.body) == function.body


INDICES = st.sampled_from(("i", "j", "s", "39 - j", "j mod 6", "0", "i + 0 * s", "(i + s) mod 6"))
STATEMENTS = st.builds(
    lambda a, b, c, d: f"y[({a}) mod 6, ({b}) mod 40] = y[({c}) mod 6, ({d}) mod 40] + x[i, j];",
    *(INDICES,) * 4,
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(STATEMENTS, min_size=1, max_size=2), st.permutations(("i in 6", "j in 40", "s in 3")))
def test_any_loops_compute_the_same_and_race_for_nothing(statements: list[str], loops: list[str]) -> None:
    text = " ".join(statements)
    for loop in loops:
        text = f"for {loop} {{ {text} }}"
    function = function_of(text)
    np.testing.assert_array_equal(run(with_kernels(function)), run(function))
