"""Schedule rules follow the machine model: another machine gets other tiles, blocks and threads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.schedule_families import SMALL, program_task

from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.relative_costs import REFERENCE_COSTS
from intarsia.native.schedule.convolution import ConvolutionChoice
from intarsia.native.schedule.families import schedule_family
from intarsia.native.schedule.gemm import gemm_plans
from intarsia.native.schedule.gemm_tile import gemm_tile
from intarsia.native.schedule.register_tiles import PixelTile, pixel_tile
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.schedule.streamed import streamed_names
from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.machine_model import MachineModel


def on(machine: MachineModel) -> Isa:
    """The instructions of AVX2 on a machine."""
    return replace(SMALL, machine=machine)


def product(rows: int, columns: int, depth: int) -> ComputeDAG:
    """A product by a constant matrix, which may be packed."""
    a = te.placeholder((rows, depth), name="A")
    b = te.placeholder((depth, columns), name="B", attrs={"constant": 1})
    k = te.reduce_axis(depth, "k")
    attrs = {"layout_free_placeholders": ("B",)}
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], k), name="C", attrs=attrs)
    return ComputeDAG((a, b, c))


@pytest.mark.parametrize(("latency", "is_enough"), [(3, True), (4, True), (5, False)])
def test_a_tile_has_as_many_sums_as_the_latency_takes(latency: int, is_enough: bool) -> None:
    """Eight sums hide four cycles of two pipes, and not five."""
    family = schedule_family(program_task("convolution").dag, on(MachineModel(fma_latency=latency)), 1)
    assert family is not None
    eight = ConvolutionChoice(*family.default)._replace(rows=1, pixels=4, blocks=2)
    assert family.fits(eight) == is_enough


def test_more_sums_need_a_larger_tile() -> None:
    def tile(least: int) -> PixelTile:
        return pixel_tile(3, 4, 2, 13, 15, costs=REFERENCE_COSTS._replace(sums=least))

    assert tile(8) == PixelTile(1, 4, 2)
    assert tile(12) == PixelTile(3, 4, 1)


def test_slow_memory_makes_tiles_of_more_rows() -> None:
    """A vector that arrives late is used by more rows; with a fast memory that does not matter."""
    slow, fast = (REFERENCE_COSTS._replace(memory=memory) for memory in (4.0, 0.01))
    tiles = [gemm_tile(16, 3072, 16, 29, is_far=True, costs=costs) for costs in (slow, fast)]
    assert tiles[0].rows > tiles[1].rows
    assert tiles[1] == gemm_tile(16, 3072, 16, 29)


def test_elements_that_are_split_are_multiplied_by_more_vectors() -> None:
    """Their instructions are shared by all vectors of a step."""
    whole, split = (gemm_tile(512, 512, 8, 9, splits_words=split) for split in (False, True))
    assert split.columns > whole.columns
    assert split.rows < whole.rows


def test_a_larger_cache_has_larger_blocks() -> None:
    def rows_of_block(second: int) -> int:
        isa = on(MachineModel(caches=CacheSizes(second=second)))
        (plan,) = gemm_plans(ScheduleTask(product(2048, 2048, 256), isa, 1))
        return plan.block.rows * plan.tile.rows

    assert rows_of_block(1 << 18) < rows_of_block(1 << 20) < rows_of_block(1 << 22)


@pytest.mark.parametrize(("ways", "most"), [(4, 2), (8, 6), (12, 10)])
def test_rows_of_a_tile_leave_ways_of_a_set(ways: int, most: int) -> None:
    """Rows of 4,096 bytes share a set of a cache whose ways have as many bytes."""
    machine = MachineModel(caches=CacheSizes(first=ways * 4096), first_ways=ways)
    (plan,) = gemm_plans(ScheduleTask(product(49, 384, 1024), on(machine), 1))
    assert plan.tile.rows <= most


@pytest.mark.parametrize("barrier", [100, 512, 5000])
def test_threads_pay_off_when_they_save_more_than_a_barrier(barrier: int) -> None:
    task = ScheduleTask(product(4, 4, 4), on(MachineModel(barrier_cycles=barrier)), 2)
    assert task.is_parallel(32 * barrier)
    assert not task.is_parallel(32 * barrier - 1)


def test_what_fits_the_cache_is_not_prefetched() -> None:
    dag = product(8, 512, 256)  # half a mebibyte of weights
    assert streamed_names(dag, CacheSizes(first=1 << 15)) == ("B",)
    assert streamed_names(dag, CacheSizes(first=1 << 18)) == ()
