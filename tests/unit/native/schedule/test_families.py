"""Families of schedules: the rule's own decision is one of them, and each state tells what was decided."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.each_case import each_case
from tests.schedule_families import PROGRAMS, SMALL, program_task

from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import infer_bound
from intarsia.native.lowering.placements import find_placements
from intarsia.native.schedule import default_state
from intarsia.native.schedule.convolution import ConvolutionChoice
from intarsia.native.schedule.families import schedule_family
from intarsia.native.schedule.gemm_family import GemmChoice
from intarsia.native.schedule.schedule_family import (
    Choice,
    Knob,
    ScheduleFamily,
    divisors_up_to,
    sizes_of_pieces,
)
from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.machine_model import MachineModel


def family_of(name: str, threads: int = 2) -> ScheduleFamily:
    found = schedule_family(program_task(name).dag, SMALL, threads)
    assert found is not None
    return found


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_choice_makes_the_default_state(name: str, threads: int) -> None:
    family, dag = family_of(name, threads), program_task(name).dag
    default = default_state(dag, SMALL, threads)
    made = family.make(family.default)
    assert made.transform_steps == default.transform_steps
    assert family.choice_of(infer_bound(dag, default)) == family.default
    assert family.canonical(family.default) == family.default
    assert family.fits(family.default)


@each_case("name", PROGRAMS)
def test_knobs_are_ascending_and_have_the_default(name: str) -> None:
    family = family_of(name)
    assert len(family.knobs) == len(family.default)
    assert len({knob.name for knob in family.knobs}) == len(family.knobs)
    for knob, default in zip(family.knobs, family.default, strict=True):
        assert default in knob.values
        assert list(knob.values) == sorted(set(knob.values))
    assert family.size > 2


def test_knobs_of_several_products_have_their_names() -> None:
    names = [knob.name for knob in family_of("two_products").knobs]
    assert names == [f"{op}.{field}" for op in "SO" for field in GemmChoice._fields]


def test_a_convolution_by_blocks_has_no_bands() -> None:
    family = family_of("convolution")
    by_blocks = ConvolutionChoice(1, 4, 2, 1, 3, 1)
    assert family.canonical(by_blocks) == ConvolutionChoice(1, 4, 2, 1, 1, 0)
    by_bands = ConvolutionChoice(2, 4, 1, 0, 9, 1)
    assert family.canonical(by_bands) == by_bands._replace(band=5)


def test_a_choice_beyond_the_registers_does_not_fit_but_is_a_state() -> None:
    family = family_of("convolution")
    large = ConvolutionChoice(3, 9, 2, 0, 1, 0)
    state = family.state_of(large)
    assert not family.fits(large)
    assert state is not None
    assert family.choice_of(state) == large


def test_a_product_is_cut_into_as_many_blocks_as_there_are() -> None:
    family = family_of("packed_product")
    many = GemmChoice(*family.default)._replace(rows=10, down=24)
    settled = GemmChoice(*family.canonical(many))
    assert settled == many._replace(down=3)
    assert family.state_of(many) == family.state_of(settled)


def test_steps_that_are_not_possible_make_no_state() -> None:
    family = family_of("convolution")
    assert family.state_of(ConvolutionChoice(*family.default)._replace(pixels=0)) is None


def test_caches_of_another_size_are_another_family() -> None:
    dag = program_task("packed_product").dag
    large = replace(SMALL, machine=MachineModel(caches=CacheSizes(first=1 << 20, second=1 << 28)))
    assert schedule_family(dag, SMALL, 2) is schedule_family(dag, SMALL, 2)
    assert schedule_family(dag, large, 2) is not schedule_family(dag, SMALL, 2)


def test_what_is_only_loops_over_elements_has_no_family() -> None:
    x = te.placeholder((8, 8), name="x")
    dag = ComputeDAG((x, te.compute((8, 8), lambda i, j: x[i, j] * 2.0, name="y")))
    assert schedule_family(dag, SMALL, 1) is None


def test_sizes_that_knobs_have() -> None:
    assert Knob.of("size", (3, 1, 3), 2).values == (1, 2, 3)
    assert sizes_of_pieces(10, 4) == (1, 2, 3, 4, 5, 10)
    assert divisors_up_to(12, 5) == (1, 2, 3, 4)


@pytest.mark.parametrize("name", ["convolution", "product"])
def test_a_state_that_a_choice_has_made_is_not_made_again(name: str) -> None:
    family, made = family_of(name), list[Choice]()

    def make(choice: Choice) -> LoopState:
        made.append(choice)
        return family.make(choice)

    counting = replace(family, make=make)
    state = counting.state_of(counting.default)
    assert state is not None
    assert counting.choice_of(state) == counting.default
    assert made == [counting.default]
    again = LoopState.replay(state.initial_dag, state.transform_steps)
    bounded = infer_bound(state.initial_dag, again)
    assert [counting.choice_of(bounded), counting.choice_of(bounded)] == [counting.default] * 2
    assert made == [counting.default] * 2  # once for the state that came from elsewhere


def test_a_state_with_all_ranges_is_bounded_by_itself() -> None:
    family = family_of("convolution")
    state = family.state_of(family.default)
    assert state is not None
    assert infer_bound(state.initial_dag, state) is state
    assert find_placements(state) is find_placements(state)
