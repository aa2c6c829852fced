"""Convolutions with channels first: right for every size, with sums in registers, and searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.default_schedules import assert_matches_declared, optimised
from tests.effort import examples
from tests.emitted_kernels import x86_sets
from tests.scheduled_kernels import written_out

from intarsia.ir.loop_walk import scalar_post_order, scalars, walk
from intarsia.ir.prim_func import Allocate, Arith, ArithOp, MemoryScope
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import IteratorAnnotation
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state, scheduled
from intarsia.native.schedule.channels_first import channels_first_state, only_channels_first
from intarsia.native.schedule.families import schedule_family
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.te.operators.column_phases import has_column_phases, in_column_phases
from intarsia.native.te.operators.convolution import convolve
from intarsia.native.te.operators.windows import Window, padded
from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.machine_model import MachineModel

SETS = x86_sets()
ISA = SETS.get("x86-64-v3") or next(iter(SETS.values()))


@dataclass(frozen=True)
class Case:
    """A convolution, and whether a positive part follows."""

    image: tuple[int, ...]
    channels: int
    filters: int
    groups: int = 1
    taps: int = 3
    dilation: int = 1
    stride: int = 1
    pad: int = 1
    batch: int = 1
    follows: bool = True

    def dag(self) -> ComputeDAG:
        """The declaration."""
        x = te.placeholder((self.batch, self.channels, *self.image), name="x")
        taps = (self.taps,) * len(self.image)
        w = te.placeholder(
            (self.filters, self.channels // self.groups, *taps), name="w", attrs={"constant": 1}
        )
        windows = [self.window(extent) for extent in self.image]
        if has_column_phases(windows):
            source = in_column_phases(x, windows, 0.0, "pad")
        else:
            source = padded(x, windows, 0.0, "pad") if self.pad else x
        shape = (self.batch, self.filters, *(window.count for window in windows))
        y = convolve(source, w, windows, self.groups, shape, "y")
        if self.follows:
            y = te.compute(shape, lambda *i: te.maximum(y[i], 0.0), name="relu")
        return ComputeDAG((y,))

    def window(self, extent: int) -> Window:
        """The window along a dimension."""
        reach = self.dilation * (self.taps - 1) + 1
        count = (extent + 2 * self.pad - reach) // self.stride + 1
        return Window(extent, count, self.taps, self.stride, self.dilation, self.pad, self.pad)


CASES = {
    "few filters": Case((9, 19), 6, 4),
    "groups of three": Case((7, 20), 12, 12, 4),
    "each channel alone": Case((9, 14), 6, 6, 6, dilation=2, pad=2, batch=2),
    "each channel alone with a stride": Case((11, 21), 5, 5, 5, stride=2),
    "rests everywhere": Case((5, 37), 3, 7, follows=False),
    "one dimension": Case((50,), 4, 6, 2),
    "three dimensions": Case((3, 4, 18), 4, 4, 2),
    "batch and dilation": Case((8, 17), 2, 3, dilation=2, pad=2, batch=3),
    "no padding": Case((6, 18), 4, 5, pad=0),
    "fewer pixels than lanes": Case((6, 5), 4, 5),
    "stride": Case((9, 37), 4, 5, stride=2),
    "stride and groups with a rest": Case((11, 40), 6, 21, 3, stride=3, taps=5, pad=2),
    "stride of a whole window": Case((8, 52), 3, 4, taps=2, stride=2, pad=0),
    "stride beyond the window": Case((50, 90), 2, 3, taps=3, stride=5, pad=1),
    "stride and dilation": Case((40, 61), 2, 3, stride=3, dilation=2, pad=2),
    "stride that divides the dilation": Case((40, 61), 2, 3, stride=2, dilation=4, pad=4),
    "one dimension with a stride": Case((90,), 4, 6, 2, taps=7, stride=3, pad=3),
}


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_computes_what_is_declared(case: Case, isa: Isa, threads: int) -> None:
    assert channels_first_state(ScheduleTask(case.dag(), isa, threads)) is not None
    assert_matches_declared(case.dag(), isa, threads)


def with_small_caches(isa: Isa) -> Isa:
    """Return a machine whose second-level cache holds no padded copy of the cases."""
    return replace(isa, machine=MachineModel(caches=CacheSizes(256, 512, 1 << 20)))


BANDS = {
    "bands": (Case((40, 37), 3, 5), 2),
    "bands of groups with a rest": (Case((41, 20), 12, 12, 4), 2),
    "bands of images": (Case((50, 17), 2, 3, dilation=2, pad=2, batch=3), 2),
    "bands with a stride": (Case((61, 37), 4, 5, stride=2), 2),
    "bands without overlap": (Case((50, 90), 2, 3, taps=3, stride=5, pad=1), 1),
    "windows as high as the image": (Case((7, 37), 4, 5, taps=7, pad=3), 1),
}


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("case", [case for case, _ in BANDS.values()], ids=BANDS)
def test_bands_of_rows_compute_what_is_declared(case: Case, isa: Isa, threads: int) -> None:
    assert_matches_declared(case.dag(), with_small_caches(isa), threads)


@pytest.mark.parametrize(("case", "around"), BANDS.values(), ids=BANDS)
def test_copies_beyond_the_second_cache_are_made_by_bands(case: Case, around: int) -> None:
    """Images, groups, then bands of rows, whose copy overlaps with that of the next band."""
    state = default_state(case.dag(), with_small_caches(ISA), 1)
    placed = state.attach_map.positions.get(state.stage_id("pad"))
    assert placed == (state.stage_id("relu"), around)


def test_threads_share_bands() -> None:
    state = default_state(Case((400, 64), 3, 4).dag(), with_small_caches(ISA), 2)
    assert state["relu"].iters[0].annotation is IteratorAnnotation.PARALLEL
    assert state.attach_map.positions.get(state.stage_id("pad")) == (state.stage_id("relu"), 0)


def test_choices_are_read_of_bands() -> None:
    dag = BANDS["bands"][0].dag()
    family = schedule_family(dag, with_small_caches(ISA), 1)
    assert family is not None
    for choice in [family.default, (1, 1, 1), (3, 2, 1)]:
        state = family.state_of(choice)
        assert state is not None
        state.notes.clear()
        assert family.choice_of(state) == choice


def sums_in_registers(dag: ComputeDAG) -> Sequence[int]:
    """Numbers of vectors of the tiles of sums."""
    function = optimised(scheduled(dag, ISA, 1).lowered(), ISA)
    visited = (visit.statement for visit in walk(function.body))
    shapes = [
        item.buffer.shape
        for item in visited
        if isinstance(item, Allocate) and item.buffer.scope is MemoryScope.REGISTER
    ]
    lanes = ISA.vector_bytes // 4
    return [prod(shape[:-1]) * -(-shape[-1] // lanes) for shape in shapes]


@given(
    st.builds(
        Case,
        image=st.tuples(st.integers(1, 9), st.integers(8, 40)),
        channels=st.sampled_from([4, 8, 12]),
        filters=st.sampled_from([4, 8, 12, 36]),
        groups=st.sampled_from([1, 2, 4]),
        batch=st.integers(1, 2),
    )
)
@settings(max_examples=examples(8), deadline=None)
def test_sums_of_any_size_stay_in_registers(case: Case) -> None:
    found = sums_in_registers(case.dag())
    assert found
    assert max(found) < ISA.vector_registers


def test_filters_of_a_tile_are_of_one_group() -> None:
    task = ScheduleTask(Case((8, 32), 12, 20, 4).dag(), ISA, 1)
    form = only_channels_first(task)
    assert form is not None
    assert form.groups == 4
    assert max(tile.filters for tile in form.choices(task)) == 5


def test_threads_share_rows() -> None:
    state = default_state(Case((64, 64), 16, 8).dag(), ISA, 2)
    assert state["relu"].iters[0].annotation is IteratorAnnotation.PARALLEL
    assert (state["relu"].iters[0].extent or 1) >= 8


@pytest.mark.parametrize("case", [Case((9, 40), 4, 5, stride=2), Case((8, 14), 24, 56, 8)], ids=str)
def test_no_index_is_a_quotient(case: Case) -> None:
    function = written_out(optimised(scheduled(case.dag(), ISA, 1).lowered(), ISA))
    operators = {
        scalar.op
        for visit in walk(function.body)
        for root in scalars(visit.statement)
        for scalar, _ in scalar_post_order(root)
        if isinstance(scalar, Arith)
    }
    assert operators.isdisjoint({ArithOp.FLOOR_DIV, ArithOp.FLOOR_MOD})


def test_its_family_has_the_default_and_reads_every_choice() -> None:
    dag = CASES["groups of three"].dag()
    family = schedule_family(dag, ISA, 1)
    assert family is not None
    assert [knob.name for knob in family.knobs] == ["filters", "rows", "vectors"]
    default = family.state_of(family.default)
    assert default is not None
    assert default.transform_steps == default_state(dag, ISA, 1).transform_steps
    for choice in [family.default, (1, 1, 1), (3, 2, 1)]:
        state = family.state_of(choice)
        assert state is not None
        state.notes.clear()
        assert family.choice_of(state) == choice


@pytest.mark.parametrize(
    ("case", "threads", "around"),
    [
        (Case((64, 64), 40, 12, 4), 1, 1),  # the loop over groups, inside that over images
        (Case((64, 64), 40, 12, 4), 2, 0),  # that over images and groups
        (Case((64, 64), 6, 4, batch=4), 2, 0),
        (Case((64, 64), 30, 9, 3), 2, None),  # threads share rows: three groups keep two threads busy for 3/4
    ],
    ids=str,
)
def test_a_group_is_padded_just_before_it_is_read(case: Case, threads: int, around: int | None) -> None:
    state = default_state(case.dag(), ISA, threads)
    placed = state.attach_map.positions.get(state.stage_id("pad"))
    assert placed == (None if around is None else (state.stage_id("relu"), around))


@pytest.mark.parametrize(("case", "innermost"), [(Case((48, 64), 8, 2), "f"), (Case((1, 16), 8, 8), "h")])
def test_what_is_fewer_is_innermost_in_a_tile(case: Case, innermost: str) -> None:
    state = default_state(case.dag(), ISA, 1)
    anchor = next(
        stage for stage in state.stages if isinstance(stage.op, te.ComputeOp) and stage.op.reduce_axes
    )
    assert anchor.iters[-2].name.startswith(innermost)
