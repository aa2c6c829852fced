"""Whole texts of lowered schedules, which people read when they ask what a schedule does."""

from collections.abc import Callable

import pytest
from tests.native_workloads import conv2d_nchw_bn_relu, matmul
from tests.properties.lowering_programs import clipped_pool

from intarsia.ir import GlobalVar, IRModule, PrimFunc
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.ir.verify import verify
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower, lower_naive

Check = Callable[[str, str], None]


def naive_matmul() -> PrimFunc:
    return lower_naive(matmul(16, 24, 32)[2:])


def tiled_matmul() -> PrimFunc:
    """In tiles of tiles, computed in a local buffer and copied from there; as a tuner writes it."""
    dag = ComputeDAG(matmul(64, 64, 64))
    state = LoopState.initial(dag).cache_write("C", "local")
    state = state.split("C.local", "i_c", [2, 2, 4]).split("C.local", "j_c", [2, 1, 16])
    state = state.split("C.local", "k", [8])
    inner = ["k.0", "i_c.2", "j_c.2", "k.1", "i_c.3", "j_c.3"]
    state = state.reorder("C.local", ["i_c.0", "j_c.0", "i_c.1", "j_c.1", *inner])
    state = state.follow_split("C", "i", 1, 2).follow_split("C", "j", 2, 2)
    state = state.reorder("C", ["i.0", "j.0", "i.1", "j.1", "i.2", "j.2"]).compute_at("C.local", "C", "j.1")
    state = state.fuse("C", ["i.0", "j.0"]).parallel("C", 0).vectorize("C", "j.2")
    state = state.vectorize("C.local", "j_c.3").unroll("C.local", "i_c.3")
    return lower(dag, state.pragma("C.local", 0, "auto_unroll_max_step$64"))


def fused_conv() -> PrimFunc:
    """Padding in the tile that reads it, what follows inlined, rows left over in the last tile."""
    dag = ComputeDAG(conv2d_nchw_bn_relu(height=14, width=14, ci=8, co=16))
    state = LoopState.initial(dag)
    for name in ("bias_add", "bn_mul", "bn_add"):
        state = state.compute_inline(name)
    state = state.split("relu", "j", [8]).split("relu", "k", [4])
    state = state.reorder("relu", ["i", "j.0", "k.0", "k.1", "j.1", "m"])
    state = state.compute_at("conv", "relu", "k.0").compute_at("padding", "conv", "nn")
    return lower(dag, state.fuse("relu", ["i", "j.0", "k.0"]).parallel("relu", 0))


def mixed_pool() -> PrimFunc:
    """A spatial loop fused with a reduction: the neutral elements come first, for all of it."""
    dag = ComputeDAG(clipped_pool())
    state = LoopState.initial(dag).fuse("pool", ["w", "ry"]).split("pool", "c", [2])
    return lower(dag, state)


MADE: dict[str, Callable[[], PrimFunc]] = {
    each.__name__: each for each in (naive_matmul, tiled_matmul, fused_conv, mixed_pool)
}


@pytest.mark.parametrize("name", MADE)
def test_lowered_loops(name: str, check_golden: Check) -> None:
    mod = IRModule({GlobalVar(name): MADE[name]()})
    verify(mod)
    text = print_module(mod).text
    check_golden(f"lowered_{name}.txt", text)
    assert parse_module(text).prim_func(name) == MADE[name]()
