"""Features that tell how well loops fit a machine."""

import pytest
from tests.native_workloads import matmul

from intarsia.autoschedule.features import Machine
from intarsia.autoschedule.features.machine_features import MACHINE_FEATURES, machine_features
from intarsia.autoschedule.features.machine_fit import MachineFit, machine_fit
from intarsia.autoschedule.features.store_analysis import analyse_stores
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower
from intarsia.native.machine.isa import Isa

AVX2 = Machine(
    vector_bytes=32, vector_registers=16, first_cache=32 * 1024, second_cache=512 * 1024, threads=4
)
DAG = ComputeDAG(matmul(64, 64, 64))


def _tiled(rows: int, columns: int, kind: str = "vectorize") -> LoopState:
    state = LoopState.initial(DAG).split("C", "i", [rows]).split("C", "j", [columns])
    state = state.reorder("C", ["i.0", "j.0", "k", "i.1", "j.1"])
    return state.vectorize("C", "j.1") if kind == "vectorize" else state


def _fit(state: LoopState, machine: Machine = AVX2) -> MachineFit:
    return machine_fit(analyse_stores(lower(DAG, state))[-1], machine)


@pytest.mark.parametrize(("columns", "fit"), [(8, 1.0), (16, 1.0), (4, 0.5), (12, 0.75)])
def test_vectors_that_are_filled(columns: int, fit: float) -> None:
    state = LoopState.initial(DAG).split("C", "j", [columns])
    state = state.reorder("C", ["i", "j.0", "k", "j.1"]).vectorize("C", "j.1")
    assert _fit(state).vector_fit == pytest.approx(fit)


def test_without_vectors_one_lane_is_used() -> None:
    assert _fit(LoopState.initial(DAG)).vector_fit == pytest.approx(1 / 8)
    assert _fit(_tiled(4, 16, "none")).vector_fit == pytest.approx(1 / 8)


def test_the_tile_is_counted_in_vectors() -> None:
    assert _fit(_tiled(4, 16)).tile_vectors == pytest.approx(4 * 16 / 8)
    assert _fit(_tiled(8, 32)).tile_vectors == pytest.approx(8 * 32 / 8)
    assert _fit(LoopState.initial(DAG)).tile_vectors == pytest.approx(1)


def test_loads_of_a_tile() -> None:
    """4 rows by 2 vectors need 4 elements of A and 2 vectors of B for 8 vectors of C."""
    assert _fit(_tiled(4, 16)).loads == pytest.approx((4 + 2) / 8)
    assert _fit(LoopState.initial(DAG)).loads == pytest.approx(2)


def test_a_vectorised_loop_around_the_reduction_is_part_of_the_tile() -> None:
    state = LoopState.initial(DAG).split("C", "j", [16]).vectorize("C", "j.1")
    assert _fit(state).tile_vectors == pytest.approx(2)
    assert _fit(state).loads == pytest.approx((1 + 2) / 2)


def test_too_large_a_tile_spills() -> None:
    def spill(state: LoopState) -> float:
        store = analyse_stores(lower(DAG, state))[-1]
        return dict(zip(MACHINE_FEATURES, machine_features(store, AVX2), strict=True))["machine_tile_spill"]

    assert spill(_tiled(4, 16)) == 0
    assert spill(_tiled(8, 32)) == pytest.approx(32 - 16)


def test_vectors_along_rows_are_not_smooth() -> None:
    """A vector over i takes elements of C and A that are a row apart; B has one element."""
    state = (
        LoopState.initial(DAG)
        .split("C", "i", [8])
        .reorder("C", ["i.0", "k", "j", "i.1"])
        .vectorize("C", "i.1")
    )
    assert _fit(state).smooth_share == pytest.approx(1 / 3)
    assert _fit(_tiled(4, 8)).smooth_share == 1


def test_what_fits_a_cache_comes_into_it_once() -> None:
    everything = 3 * 64 * 64 * 4 / 64**3
    assert _fit(LoopState.initial(DAG)).second_traffic == pytest.approx(everything)
    tiny = Machine(32, 16, 1024, 2048, 4)
    assert _fit(LoopState.initial(DAG), tiny).first_traffic > 4
    assert _fit(_tiled(8, 8), tiny).first_traffic < _fit(LoopState.initial(DAG), tiny).first_traffic


@pytest.mark.parametrize(("rows", "balance"), [(16, 1.0), (64, 0.25), (8, 1.0), (13, 5 / 8)])
def test_threads_that_have_work(rows: int, balance: float) -> None:
    state = LoopState.initial(DAG).split("C", "i", [rows]).parallel("C", "i.0")
    assert _fit(state).balance == pytest.approx(balance)


def test_a_serial_nest_leaves_the_other_threads_without_work() -> None:
    assert _fit(LoopState.initial(DAG)).balance == pytest.approx(1 / 4)


def test_threads_start_where_the_parallel_loop_begins() -> None:
    assert _fit(LoopState.initial(DAG)).starts == 0
    assert _fit(LoopState.initial(DAG).parallel("C", "i")).starts == 1
    assert _fit(LoopState.initial(DAG).parallel("C", "j")).starts == 64


def test_the_machine_of_an_instruction_set() -> None:
    isa = Isa.parse("x86_64 znver3 +avx2 +avx +fma")
    assert Machine.of_isa(isa, 2) == Machine(32, 16, isa.caches.first, isa.caches.second, 2, isa.machine)
