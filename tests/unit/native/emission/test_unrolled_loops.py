"""Loops that the emitter unrolls give the code that copies of their bodies give."""

from __future__ import annotations

import re

import pytest
from tests.tir_checks import parsed

from intarsia.ir import GlobalVar, IRModule
from intarsia.native.emission.emit import emit_llvm
from intarsia.native.machine.isa import Isa
from intarsia.native.tir import Simplify, UnrollLoop
from intarsia.transform import Sequential

AVX2 = Isa("x86_64", "x86-64-v3", ("avx", "avx2", "f16c", "fma", "sse2", "sse4.1"))

BLOCKS = """def prim @f(
  x: Buffer[(64, 512), float32], w: Buffer[(24, 512, 16), float32], y: Buffer[(64, 24, 16), float32]
) attributes {streamed=["w"], contract=true} {
  for q in 8 { for t in 16 {
    alloc acc: Buffer[(4, 3, 16), float32, register] {
      for unrolled i in 4 { for unrolled o in 3 { for vectorized j in 16 { acc[i, o, j] = 0.0f32; } } }
      for k in 512 { for unrolled i in 4 { for unrolled o in 3 { for vectorized j in 16 {
        acc[i, o, j] = acc[i, o, j] + x[t * 4 + i, k] * w[q * 3 + o, k, j];
      } } } }
      for unrolled i in 4 { for unrolled o in 3 { for vectorized j in 16 {
        y[t * 4 + i, q * 3 + o, j] = acc[i, o, j];
      } } }
    }
  } }
}"""

MEANS = """def prim @f(x: Buffer[(9, 16), float32], y: Buffer[(9, 16), float32]) {
  for unrolled i in 9 { for vectorized j in 16 {
    y[i, j] = x[i, j] * (1.0f32 / (float32(min(i + 2, 9) - max(i - 1, 0)) * 3.0f32));
  } }
}"""

GUARDS = """def prim @f(x: Buffer[(8,), float32], y: Buffer[(6,), float32]) {
  for unrolled i in 6 {
    y[i] = 0.0f32;
    for unrolled k in 4 {
      if 0 <= i + k - 2 and i + k - 2 < 6 { y[i] = y[i] + x[i + k - 2]; }
    }
  }
}"""


def text_of(source: str, *, is_written_out: bool) -> str:
    module = IRModule({GlobalVar("f"): parsed(source)})
    passes = Sequential([Simplify(), UnrollLoop(is_written_out=is_written_out), Simplify()])
    text = emit_llvm(passes(module).prim_func("f"), "f", AVX2).text
    return re.sub(r"([%\s][a-z]+)\d+", r"\1", text)  # labels and values are counted


@pytest.mark.parametrize("source", [BLOCKS, MEANS, GUARDS], ids=["blocks", "means", "guards"])
def test_the_emitter_unrolls_as_the_pass(source: str) -> None:
    copies = sorted(text_of(source, is_written_out=True).splitlines())
    assert sorted(text_of(source, is_written_out=False).splitlines()) == copies


def test_what_they_read_is_prefetched() -> None:
    assert text_of(BLOCKS, is_written_out=False).count("call void @llvm.prefetch") >= 3


def test_numbers_are_computed_before() -> None:
    text = text_of(MEANS, is_written_out=False)
    assert not {"fdiv", "sitofp"} & {*text.split()}
