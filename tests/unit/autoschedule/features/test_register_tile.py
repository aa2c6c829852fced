"""What is in registers during a reduction, and how many iterations are rests."""

from tests.native_workloads import matmul

from intarsia.autoschedule.features import Machine
from intarsia.autoschedule.features.covered_work import padding_ratio, padding_ratios
from intarsia.autoschedule.features.register_tile import RegisterTile
from intarsia.autoschedule.features.store_analysis import StoreAnalysis, analyse_stores
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower

MACHINE = Machine(32, 16, 32768, 524288, 1)
DAG = ComputeDAG(matmul(40, 40, 24))


def tiled(rows: int, columns: int) -> LoopState:
    state = LoopState.initial(DAG).split("C", "i", [rows]).split("C", "j", [columns])
    return state.reorder("C", ["i.0", "j.0", "k", "i.1", "j.1"]).vectorize("C", "j.1")


def product_of(state: LoopState) -> StoreAnalysis:
    (store,) = [each for each in analyse_stores(lower(DAG, state)) if each.record.loads]
    return store


def tile_of(state: LoopState, unroll: float = 0.0) -> RegisterTile:
    return RegisterTile.of_store(product_of(state), MACHINE, unroll)


def test_a_tile_is_results_and_what_is_loaded_for_them() -> None:
    tile = tile_of(tiled(4, 16).unroll("C", "i.1"))
    assert (tile.vectors, tile.read_vectors, tile.read_elements) == (8, 2, 4)
    assert (tile.length, tile.steps) == (24, 1)
    assert tile.is_kept
    assert not tile.is_scattered


def test_results_are_kept_where_their_loops_are_written_out_and_they_fit() -> None:
    assert not tile_of(tiled(4, 16)).is_kept
    assert not tile_of(tiled(4, 16), unroll=3).is_kept
    assert tile_of(tiled(4, 16), unroll=4).is_kept
    assert not tile_of(tiled(10, 16).unroll("C", "i.1")).is_kept


def test_steps_that_are_written_out_are_counted() -> None:
    state = LoopState.initial(DAG).split("C", "k", [3]).reorder("C", ["i", "k.0", "k.1", "j"])
    assert tile_of(state.unroll("C", "k.1").vectorize("C", "j")).steps == 3


def test_lanes_apart_are_scattered_and_read_one_by_one() -> None:
    state = LoopState.initial(DAG).split("C", "i", [8]).reorder("C", ["i.0", "j", "k", "i.1"])
    tile = tile_of(state.vectorize("C", "i.1"))
    assert tile.is_scattered
    assert (tile.read_vectors, tile.read_elements) == (0, 9)


def test_rests_are_known_to_all_that_is_inside() -> None:
    store = product_of(tiled(7, 16))
    known = padding_ratios([store])
    assert sorted(known.values()) == [42 / 40, 48 / 40]
    assert padding_ratio(store, known) == 42 / 40 * (48 / 40)
    assert padding_ratios([product_of(tiled(8, 8))]) == {}
