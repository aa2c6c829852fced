"""Bounds-checked kernels name the first access that is out of bounds, and return."""

import numpy as np
import pytest
from tests.emitted_kernels import compile_kernel
from tests.tir_checks import parsed

from intarsia.native.emission.state import AccessSite


@pytest.mark.parametrize("kind", ["", "vectorized ", "unrolled ", "parallel "])
def test_load_out_of_bounds(kind: str) -> None:
    loop = f"for {kind}i in 8 {{ y[i] = x[3, i + 2]; }}"
    kernel = compile_kernel(
        parsed(f"def prim @f(x: Buffer[(4, 7), float32], y: Buffer[(8,), float32]) {{ {loop} }}"),
        bounds_checked=True,
    )
    x, y = np.ones((4, 7), np.float32), np.zeros(8, np.float32)
    kernel([x, y])
    site, index = kernel.failed
    assert kernel.emitted.sites[site - 1] == AccessSite("x", 1, 7, is_store=False)
    assert index == 7
    np.testing.assert_array_equal(y, [1, 1, 1, 1, 1, 0, 0, 0])


def test_store_below_zero_through_a_table() -> None:
    kernel = compile_kernel(
        parsed("""def prim @f(t: Buffer[(4,), int64], y: Buffer[(5,), float32]) {
          for vectorized i in 4 { y[t[i]] = 1.0f32; } }"""),
        bounds_checked=True,
    )
    y = np.zeros(5, np.float32)
    kernel([np.array([4, 0, -1, 2]), y])
    site, index = kernel.failed
    assert kernel.emitted.sites[site - 1] == AccessSite("y", 0, 5, is_store=True)
    assert index == -1
    np.testing.assert_array_equal(y, [1, 0, 0, 0, 1])


def test_register_out_of_bounds() -> None:
    kernel = compile_kernel(
        parsed("""def prim @f(y: Buffer[(1,), float32]) {
          alloc t: Buffer[(2, 2), float32, register] {
            for unrolled i in 2 { t[i, 0] = 1.0f32; t[i, i + 1] = 2.0f32; }
            y[0] = t[0, 0];
          } }"""),
        bounds_checked=True,
    )
    y = np.zeros(1, np.float32)
    kernel([y])
    site, index = kernel.failed
    assert kernel.emitted.sites[site - 1] == AccessSite("t", 1, 2, is_store=True)
    assert (index, y[0]) == (2, 0)


def test_indices_that_are_known_to_be_right_are_not_checked() -> None:
    kernel = compile_kernel(
        parsed("def prim @f(y: Buffer[(8,), float32]) { for i in 4 { y[i * 2 + 1] = 1.0f32; } }"),
        bounds_checked=True,
    )
    assert kernel.emitted.sites == ()
