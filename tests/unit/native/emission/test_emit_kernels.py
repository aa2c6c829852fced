"""Kernels that the emitter writes compute what the interpreter computes, on vectors of several widths."""

from __future__ import annotations

import numpy as np
import pytest
from tests.emitted_kernels import compile_kernel, x86_sets
from tests.tir_checks import assert_same_bits, parsed, random_arrays, results

from intarsia.native.machine.isa import Isa

KERNELS = {
    "every second element": """(x: Buffer[(33,), float32], y: Buffer[(17,), float32]) {
      for vectorized i in 17 { y[i] = x[i * 2]; } }""",
    "every third element, moved": """(x: Buffer[(60,), int32], y: Buffer[(19,), int32]) {
      for vectorized i in 19 { y[i] = x[i * 3 + 2]; } }""",
    "every third element to the last": """(x: Buffer[(76,), float32], y: Buffer[(26,), float32]) {
      for vectorized i in 26 { y[i] = x[i * 3]; } }""",
    "every fourth element to the last": """(x: Buffer[(80,), float32], y: Buffer[(20,), float32]) {
      for vectorized i in 20 { y[i] = x[i * 4 + 3] + x[i * 4]; } }""",
    "every fourth double": """(x: Buffer[(125,), float64], y: Buffer[(32,), float64]) {
      for vectorized i in 32 { y[i] = x[i * 4]; } }""",
    "backwards": """(x: Buffer[(21,), float64], y: Buffer[(21,), float64]) {
      for vectorized i in 21 { y[20 - i] = x[i] + x[20 - i]; } }""",
    "a column": """(x: Buffer[(9, 5), float32], y: Buffer[(5, 9), float32]) {
      for i in 5 { for vectorized j in 9 { y[i, j] = x[j, i]; } } }""",
    "by table": """(x: Buffer[(7,), float32], t: Buffer[(20,), int64], y: Buffer[(20,), float32]) {
      for vectorized i in 20 { y[i] = x[t[i]] * 2.0f32; } }""",
    "into a table": """(t: Buffer[(13,), int64], y: Buffer[(7,), float32]) {
      for vectorized i in 13 { y[t[i]] = 5.0f32; } }""",
    "quotients of the lane": """(x: Buffer[(6, 8), float32], y: Buffer[(48,), float32]) {
      for vectorized i in 48 { y[i] = x[i floordiv 8, i mod 8] + x[i floordiv 9, 3]; } }""",
    "fused loops": """(x: Buffer[(6, 16), float32], y: Buffer[(6, 16), float32]) {
      for f in 6 { for vectorized j in 16 {
        y[(f * 16 + j) floordiv 16, (f * 16 + j) mod 16] =
          x[(f * 16 + j) floordiv 16, (f * 16 + j) mod 16]; } } }""",
    "guard that a constant mask is": """(x: Buffer[(20,), float32], y: Buffer[(20,), float32]) {
      for vectorized i in 20 { if i < 11 { y[i] = x[i + 9] ; } else { y[i] = x[i - 11]; } } }""",
    "guard that is known at run time": """(x: Buffer[(5, 9), float32], y: Buffer[(5, 9), float32]) {
      for i in 5 { for vectorized j in 9 {
        if i + j < 8 { y[i, j] = x[i, j + i - i] + x[i, 0]; }
        else { y[i, j] = x[i, j * 1] - 1.0f32; } } } }""",
    "guard by data": """(x: Buffer[(37,), float32], y: Buffer[(37,), float32], z: Buffer[(74,), float32]) {
      for vectorized i in 37 {
        if x[i] < 3.0f32 { y[i] = x[36 - i]; z[i * 2] = x[i]; if x[i] == 1.0f32 { y[i] = 9.0f32; } }
        else { z[i * 2 + 1] = x[i]; } } }""",
    "masked table": """(x: Buffer[(7,), float32], t: Buffer[(20,), int64], y: Buffer[(20,), float32]) {
      for vectorized i in 20 { if t[i] < 4 { y[t[i]] = x[t[i] + 3]; } } }""",
    "last lane that is asked": """(x: Buffer[(12,), float32], y: Buffer[(2,), float32]) {
      for vectorized i in 12 { y[0] = x[i]; if x[i] < 4.0f32 { y[1] = x[i]; } } }""",
    "scalar of each lane": """(x: Buffer[(19,), float32], y: Buffer[(19,), float32]) {
      for vectorized i in 19 { alloc t: Buffer[(), float32] {
        t[] = x[i] + 1.0f32;
        if 3.0f32 < x[i] { t[] = t[] * 2.0f32; }
        y[i] = t[] * t[]; } } }""",
    "array of each lane": """(x: Buffer[(19, 4), float32], y: Buffer[(19,), float32]) {
      for vectorized i in 19 { alloc t: Buffer[(4,), float32, thread] {
        for k in 4 { t[k] = x[i, k]; if 2.0f32 < x[i, k] { t[3 - k] = 1.0f32; } }
        y[i] = t[0] + t[i mod 4] * t[3]; } } }""",
    "registers of each lane": """(x: Buffer[(19, 4), float32], y: Buffer[(19,), float32]) {
      for vectorized i in 19 { alloc t: Buffer[(4,), float32, register] {
        for unrolled k in 4 { t[k] = x[i, k]; }
        for r in 3 { for unrolled k in 4 { t[k] = t[3 - k] + t[k]; } }
        y[i] = t[0] + t[3]; } } }""",
    "loop inside of lanes": """(x: Buffer[(6, 11), float32], y: Buffer[(11,), float32]) {
      for vectorized i in 11 { y[i] = 0.0f32; for k in 6 { y[i] = y[i] + x[k, i]; } } }""",
    "sum over lanes": """(x: Buffer[(27,), float32], y: Buffer[(1,), float32]) {
      y[0] = 0.0f32; for vectorized i in 27 { y[0] = y[0] + x[i]; } }""",
    "sum over lanes in a register": """(x: Buffer[(27,), float32], y: Buffer[(1,), float32]) {
      alloc s: Buffer[(), float32] {
        s[] = 0.0f32; for vectorized i in 27 { s[] = max(s[], x[i]); } y[0] = s[]; } }""",
    "vectorised around vectorised": """(x: Buffer[(4, 12), float32], y: Buffer[(4, 12), float32]) {
      for vectorized i in 4 { for vectorized j in 12 { y[i, j] = x[i, j] + 1.0f32; } } }""",
    "tile read in other ways than written": """(x: Buffer[(16,), float32], y: Buffer[(64,), float32]) {
      alloc t: Buffer[(16,), float32, register] {
        for vectorized i in 16 { t[i] = x[i]; }
        for r in 3 { for unrolled i in 16 { t[i] = t[15 - i] + x[i]; } }
        for vectorized i in 16 { y[i] = t[i]; }
        for vectorized i in 8 { y[16 + i] = t[i * 2]; }
        for vectorized i in 7 { y[32 + i] = t[i + 3]; }
        for vectorized i in 16 { y[48 + i] = t[i floordiv 4]; }
        for vectorized i in 16 { t[15 - i] = x[i]; }
        for vectorized i in 16 { y[i] = y[i] + t[i]; } } }""",
    "registers across a branch": """(x: Buffer[(9,), float32], y: Buffer[(9,), float32]) {
      alloc s: Buffer[(), float32] { alloc t: Buffer[(8,), float32, register] {
        s[] = 0.0f32;
        for vectorized i in 8 { t[i] = 1.0f32; }
        for i in 9 {
          if x[i] < 3.0f32 { s[] = s[] + x[i]; t[3] = s[]; }
          else { if x[i] < 5.0f32 { for vectorized j in 8 { t[j] = t[j] + 2.0f32; } } }
          y[i] = s[] + t[3] + t[4]; } } } }""",
    "register that earlier iterations have set": """(x: Buffer[(9,), float32], y: Buffer[(9,), float32]) {
      alloc s: Buffer[(), float32] {
        for i in 9 {
          if 0 < i { y[i] = s[]; } else { y[i] = 0.0f32; }
          for j in 2 { s[] = x[i] + x[j]; } } } }""",
    "result of a loop": """(x: Buffer[(9,), float32], y: Buffer[(1,), float32]) {
      alloc s: Buffer[(), float32] { for i in 9 { s[] = x[i]; } y[0] = s[]; } }""",
    "kinds of elements side by side": """(x: Buffer[(21,), uint8], s: Buffer[(1,), float32],
        y: Buffer[(21,), float32], b: Buffer[(21,), bool], h: Buffer[(21,), float16],
        g: Buffer[(21,), bfloat16]) {
      for vectorized i in 21 {
        y[i] = float32(x[i]) * s[0]; b[i] = x[i] < 3u8;
        h[i] = float16(y[i]) + h[i]; g[i] = bfloat16(y[i]) * g[i];
      } }""",
    "loop variable as a number": """(y: Buffer[(5, 13), float32], z: Buffer[(5, 13), int64]) {
      for i in 5 { for vectorized j in 13 {
        y[i, j] = float32(i * 13 + j); z[i, j] = min(i, j) * max(j, 3) - (j * j) mod 5; } } }""",
    "window at a border": """(x: Buffer[(10,), float32], y: Buffer[(10,), float32]) {
      for i in 10 { y[i] = 0.0f32; for k in 3 {
        if 0 <= i + k - 1 and i + k - 1 < 10 { y[i] = y[i] + x[i + k - 1]; } } } }""",
    "stores that are read again": """(x: Buffer[(8,), float32], y: Buffer[(8,), float32]) {
      for i in 7 { y[i] = x[i]; x[i + 1] = x[i + 1] + y[i]; y[i] = x[i + 1] + x[i]; } }""",
    "distances that are parameters": """(x: Buffer[(64, 8), float32], n: Buffer[(), int64],
        m: Buffer[(), int64], y: Buffer[(64, 8), float32]) {
      for i in 3 { for unrolled j in 4 { for vectorized k in 8 {
        y[min(i * n[] + j * m[] + 2, 60) - j, k] =
          x[i * n[] + j * m[] + j, k] - x[n[] - m[] + 9, k]; } } } }""",
    "distances that change": """(x: Buffer[(64,), float32], n: Buffer[(), int64],
        m: Buffer[(), int64], y: Buffer[(64,), float32]) {
      for i in 3 { for unrolled j in 4 { m[] = j + n[]; y[i * n[] + m[] * 2] = x[m[] + i]; } } }""",
}


@pytest.mark.quick_cases(14)
@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_computes_what_the_interpreter_does(name: str, isa: Isa) -> None:
    function = parsed(f"def prim @f{KERNELS[name]}")
    for checked in (False, True):
        arrays = random_arrays(function, seed=3)
        expected = results(function, arrays)
        kernel = compile_kernel(function, isa, bounds_checked=checked)
        kernel(arrays)
        assert kernel.failed == (0, 0)
        assert_same_bits(arrays, expected)


PARALLEL = {
    "rows": """(x: Buffer[(11, 20), float32], y: Buffer[(11, 20), float32]) {
      for parallel i in 11 { for vectorized j in 20 { y[i, j] = x[i, j] + 1.0f32; } } }""",
    "inside of other loops": """(x: Buffer[(2, 3, 7, 5), int32], y: Buffer[(2, 3, 7, 5), int32]) {
      for a in 2 { for unrolled b in 3 { for parallel i in 7 { for j in 5 {
        y[a, b, i, j] = x[a, b, i, j] * 3i32 + int32(a + b); } } } } }""",
    "nested": """(x: Buffer[(6, 8), float32], y: Buffer[(6, 8), float32]) {
      for parallel i in 6 { for parallel j in 8 { y[i, j] = x[i, j] * 2.0f32; } } }""",
    "with memory of its own": """(x: Buffer[(5, 3000), float32], y: Buffer[(5, 3000), float32]) {
      for parallel i in 5 { alloc t: Buffer[(3000,), float32, thread] {
        for vectorized j in 3000 { t[j] = x[i, j] + 1.0f32; }
        for vectorized j in 3000 { y[i, j] = t[2999 - j]; } } } }""",
    "with memory of all": """(x: Buffer[(1100,), float32], y: Buffer[(7, 1100), float32]) {
      alloc t: Buffer[(1100,), float32] { alloc s: Buffer[(), float32] {
        s[] = x[3];
        for vectorized j in 1100 { t[j] = x[j] + 1.0f32; }
        for parallel i in 7 { alloc u: Buffer[(1100,), float32] {
          for vectorized j in 1100 { u[j] = t[j] * s[]; }
          for vectorized j in 1100 { y[i, j] = u[j] + float32(i); } } } } } }""",
    "twice": """(x: Buffer[(9,), float32], y: Buffer[(9,), float32]) {
      for parallel i in 9 { y[i] = x[i] * 2.0f32; }
      for parallel i in 9 { x[i] = y[8 - i] + x[i]; } }""",
}


@pytest.mark.parametrize("name", PARALLEL)
def test_parallel_loops_run_in_parts(name: str) -> None:
    function = parsed(f"def prim @f{PARALLEL[name]}")
    arrays = random_arrays(function, seed=5)
    expected = results(function, arrays)
    kernel = compile_kernel(function)
    kernel(arrays)
    assert len(kernel.ranges) >= 3
    assert_same_bits(arrays, expected)


def test_kernel_does_not_write_beyond_its_buffers() -> None:
    function = parsed("""def prim @f(x: Buffer[(29,), float32], y: Buffer[(13,), float32]) {
      for vectorized i in 13 { if i < 12 { y[i] = x[i * 2] + x[28 - i]; } } }""")
    memory = np.full(13 + 64, -1, np.float32)
    arrays = [np.arange(29, dtype=np.float32), memory[32:45]]
    compile_kernel(function)(arrays)
    assert (memory[:32] == -1).all()
    assert (memory[44:] == -1).all()
    assert (memory[32:44] != -1).all()
