"""Virtual threads: a thread has sums for each of its own, and what threads share is fetched once."""

import pytest
from tests.gpu_on_cpu.kernel_checks import check_kernels
from tests.native_workloads import matmul
from tests.tir_checks import in_module

from intarsia.ir.parser import parse_module
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.default_gpu_state import lower_to_kernels
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower

PRODUCT = ComputeDAG(matmul(10, 9, 6))


def tiled(rows: tuple[int, int, int], columns: tuple[int, int, int]) -> LoopState:
    """A product with virtual threads, threads, and a tile of each; both factors are fetched together."""
    state = LoopState.initial(PRODUCT).cache_write("C", "local")
    state = state.cache_read("A", "shared", ["C.local"]).cache_read("B", "shared", ["C.local"])
    state = state.split("C", "i", rows).split("C", "j", columns)
    state = state.reorder("C", [f"{axis}.{level}" for level in range(4) for axis in "ij"])
    for level, axis in enumerate(("blockIdx.x", "vthread", "threadIdx.x")):
        state = state.fuse("C", [level, level + 1]).bind("C", level, axis)
    state = state.split("C.local", "k", [2]).reorder("C.local", ["k.0", "k.1", "i_c", "j_c"])
    state = state.compute_at("C.local", "C", 2)
    for name in ("A.shared", "B.shared"):
        state = state.compute_at(name, "C.local", 0).fuse(name, [0, 1])
        state = state.split(name, 0, [4]).bind(name, 1, "threadIdx.x")
    return state


@pytest.mark.parametrize(
    ("rows", "columns"), [((2, 2, 2), (2, 2, 1)), ((3, 1, 2), (1, 4, 2)), ((4, 2, 2), (2, 3, 2))]
)
def test_virtual_threads_compute_the_same(rows: tuple[int, int, int], columns: tuple[int, int, int]) -> None:
    check_kernels(PRODUCT, lower_to_kernels(PRODUCT, tiled(rows, columns)), is_compiled=False)


def test_sums_have_an_element_for_each_and_shared_tiles_are_filled_once() -> None:
    text = str(in_module(lower(PRODUCT, tiled((2, 2, 2), (2, 2, 1)))))
    assert '"C.local": Buffer[(4, 2, 1), float32' in text
    assert text.count("for virtual ") == 3  # begin, sum, and end: the copies are outside of them
    assert text.count('"A.shared"[') == 2
    assert str(parse_module(text)) == text
