"""Sums over a tile stay in registers though its loops are small ones that nobody has marked."""

from __future__ import annotations

import pytest
from tests.tir_checks import checked, in_module, lines_of, parsed

from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import For, ForKind, Store
from intarsia.native.tir import MarkSmallLoops, default_tir
from intarsia.transform import PassContext

SUMS = """def prim @f(x: Buffer[(9, 4, 8), float32], y: Buffer[(4, 8), float32]) attributes {HINT} {
  for k in 9 { for i in 4 { for vectorized j in 8 { y[i, j] = y[i, j] + x[k, i, j]; } } }
}"""


def test_small_loops_are_marked_only() -> None:
    function = parsed(SUMS.replace("HINT", "auto_unroll_max_step=4"))
    lines = lines_of(checked(MarkSmallLoops(), function))
    assert [line.strip() for line in lines[:3]] == [
        *("for k in 9 {", "for unrolled i in 4 {", "for vectorized j in 8 {")
    ]
    assert sum("y[i, j] =" in line for line in lines) == 1


def test_without_a_hint_nothing_changes() -> None:
    mod = in_module(parsed(SUMS.replace(" attributes {HINT}", "")))
    assert MarkSmallLoops()(mod) is mod


def test_the_limits_are_those_of_unroll_loop() -> None:
    function = parsed(SUMS.replace("HINT", "auto_unroll_max_step=4"))
    with PassContext(config={"tir.UnrollLoop": {"auto_max_stores": 3}}):
        assert checked(MarkSmallLoops(), function) is function


@pytest.mark.parametrize(("hint", "in_memory"), [(0, True), (4, False)])
def test_sums_are_in_registers_during_the_loop(hint: int, in_memory: bool) -> None:
    """The loop over k stores to y only if it is not known that the tile is unrolled."""
    mod = in_module(parsed(SUMS.replace("HINT", f"auto_unroll_max_step={hint}")))
    after = default_tir(32, 16)(mod).prim_func("f")
    entered = [visit.statement for visit in walk(after.body)]
    (loop,) = {one for one in entered if isinstance(one, For) and one.extent == 9}
    assert loop.kind is ForKind.SERIAL
    names = {visit.statement.buffer.name for visit in walk(loop) if isinstance(visit.statement, Store)}
    assert ("y" in names) is in_memory
