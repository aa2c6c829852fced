"""Placements as genomes of operator groups, and their evolution with planted latencies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import pytest
from tests.collage_costs import (
    BOUNDARIES,
    HOST_SPEC,
    REFERENCE_SPEC,
    DrawnCosts,
    One,
    Two,
    acme,
    not_tanh,
    parts,
    some_specs,
    spec,
)
from tests.collage_programs import program
from tests.mock_cost_estimator import MockCostEstimator

from intarsia.build import build
from intarsia.collage.candidates.candidate_partition import PartitionSpec
from intarsia.collage.collage import CollageResult, collage
from intarsia.collage.evolution.evolve_placements import evolve
from intarsia.collage.evolution.placement_space import PlacementSpace
from intarsia.collage.function_search import CollageOptions
from intarsia.collage.placement.placement import Placement
from intarsia.collage.rules.typical_rules import graph_style_rule, single_operators_rule
from intarsia.ir import IRModule
from intarsia.op import verify
from intarsia.runtime.kernel import TOOLCHAINS

pytestmark = pytest.mark.quick_tests(9, also=["test_toolchains_in_conflict_are_invalid_together"])

CHAIN = "def @main(%x: T) { Exp(Relu(Tanh(Sqrt(Exp(Neg(%x)))))) }"
RESIDUAL = """def @main(%x: T) {
  %0 = Exp(%x); %1 = Sqrt(%0); %2 = Tanh(%1); %3 = Add(%2, %0); %4 = Neg(%3); Add(%4, %1)
}"""
SPLIT = """def @main(%x: T) {
  %0 = Split(%x, axis=0, num_outputs=2, outputs=2); %1 = Exp(%0.0); %2 = Sqrt(%0.1); Concat(%1, %2, axis=0)
}"""
BRANCHES = """def @main(%x: T, %c: Tensor[(), bool]) {
  %0 = Exp(%x); %1 = if (%c) { Sqrt(Tanh(%0)) } else { Neg(%0) }; Exp(Tanh(%1))
}"""


@pytest.fixture(autouse=True, scope="module")
def toolchains() -> Iterator[None]:
    with TOOLCHAINS.holding("one", One), TOOLCHAINS.holding("two", Two):
        yield


def searched(mod: IRModule, specs: Sequence[PartitionSpec] | None = None, seed: int = 0) -> CollageResult:
    options = CollageOptions(covers=3, shrink=False)
    return collage(mod, specs or some_specs(), DrawnCosts(seed, invalid=0), BOUNDARIES, options)


def space_of(mod: IRModule, most: int = 32, seed: int = 0) -> PlacementSpace:
    space = PlacementSpace.of(searched(mod, seed=seed), most=most)
    assert space is not None
    return space


def single_groups(mod: IRModule) -> PlacementSpace:
    """Both toolchains run all; covers of one partition do not divide groups."""
    specs = (
        spec("one", graph_style_rule(lambda _: True)),
        spec("two", graph_style_rule(lambda _: True)),
        REFERENCE_SPEC,
        HOST_SPEC,
    )
    options = CollageOptions(covers=1)
    found = collage(mod, specs, MockCostEstimator({"one": 1, "two": 2}), options=options)
    space = PlacementSpace.of(found)
    assert space is not None
    return space


def decoded(space: PlacementSpace, genome: Sequence[int]) -> Placement:
    placement = space.decode(tuple(genome))
    assert placement is not None
    return placement


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("text", [CHAIN, RESIDUAL, SPLIT, BRANCHES])
def test_every_genome_is_a_placement_that_computes_the_same(text: str) -> None:
    mod = program(text)
    inputs = [np.array([0.3, 0.8], np.float32), np.array(True)][: len(mod["main"].params)]
    expected = build(mod)(*inputs)
    space = space_of(mod)
    genomes = list(itertools.product(*space.choices))[:80]
    assert len(genomes) > 1
    for genome in genomes:
        after = decoded(space, genome).applied(mod)
        verify(after)
        np.testing.assert_allclose(build(after)(*inputs), expected, rtol=1e-6)


def test_followers_and_neighbours_form_groups() -> None:
    space = single_groups(program("def @main(%x: T) { Neg(Softmax(Relu(Exp(%x)))) }"))
    sizes = [len(group.items) for group in space.groups]
    assert sizes == [2, 1, 1]  # nothing follows Softmax element by element within its loops
    assert space.choices == ((0, 1),) * 3
    assert sum(group.share for group in space.groups) == pytest.approx(1)


def test_borders_of_covers_are_borders_of_groups() -> None:
    mod = program(CHAIN)
    found = searched(mod)
    space = PlacementSpace.of(found)
    assert space is not None
    for record in found.placements:
        kept = list(record.placement.partitions)
        again = decoded(space, space.encode(record.placement))
        merged = [(name, label) for name, label in parts(again.partitions)]
        assert "+".join(label for _, label in merged) == "+".join(each.label for each in kept)
        names = [key for key, _ in itertools.groupby(each.toolchain for each in kept)]
        assert [name for name, _ in merged] == names  # neighbours of one toolchain have become one


def test_few_groups_of_equal_shares_are_made_of_many() -> None:
    text = "%x"
    for number in range(40):
        text = f"{('Softmax', 'Exp')[number % 2]}({text})"
    mod = program(f"def @main(%x: T) {{ {text} }}")
    many, few = single_groups(mod), PlacementSpace.of(searched(mod), most=5)
    assert len(many.groups) > 10
    assert few is not None
    assert len(few.groups) <= 5
    covered = sorted(item for group in few.groups for item in group.items)
    assert covered == sorted(item for group in many.groups for item in group.items)


def test_what_only_one_toolchain_runs_is_no_gene() -> None:
    """Tanh is refused by `two`: so its item is in no group, and both uniform genomes are valid."""
    mod = program(CHAIN)
    space = space_of(mod)
    tanh = [
        position for position, item in enumerate(space.items) if "Tanh" in str(space.graph[item.index].expr)
    ]
    first = space.encode(searched(mod).best)
    names = [each.name for each in space.specs]
    two = decoded(space, space.uniform(names.index("two"), first))
    assert all(item not in group.items for group in space.groups for item in tanh[:1])
    assert parts(two.partitions) == [("two", "Neg+Exp+Sqrt"), ("one", "Tanh"), ("two", "Relu+Exp")]
    one = decoded(space, space.uniform(names.index("one"), first))
    assert parts(one.partitions) == [("one", "Neg+Exp+Sqrt+Tanh+Relu+Exp")]
    assert space.is_whole(one)
    assert not space.is_whole(two)


def test_adjacent_groups_stay_apart_where_joining_them_would_make_a_cycle() -> None:
    """What one toolchain runs before and after the other one, and by its side, cannot be one partition."""
    mod = program("def @main(%x: T) { %0 = Softmax(%x); %1 = Softmax(%0); Mul(%0, %1) }")
    space = single_groups(mod)
    assert len(space.groups) == 3
    found = {
        genome: tuple(parts(decoded(space, genome).partitions))
        for genome in itertools.product(*space.choices)
    }
    for genome in found:
        verify(decoded(space, genome).applied(mod))
    assert found[0, 0, 0] == (("one", "Softmax+Softmax+Mul"),)
    assert found[0, 1, 0] == (("one", "Softmax"), ("two", "Softmax"), ("one", "Mul"))
    assert found[1, 0, 0] == (("two", "Softmax"), ("one", "Softmax+Mul"))


def test_composites_are_kept_and_what_they_do_not_hold_is_invalid() -> None:
    mod = program("def @main(%x: T) { %0 = Relu(%x); %1 = Add(%0, %x); Relu(Add(%1, %0)) }")
    specs = (acme(), spec("one", graph_style_rule(lambda _: True)), REFERENCE_SPEC, HOST_SPEC)
    found = collage(mod, specs, MockCostEstimator({"acme": 2, "one": 1}))
    space = PlacementSpace.of(found)
    assert space is not None
    best = space.encode(found.best)
    (only,) = decoded(space, space.uniform(0, best)).partitions
    assert only.toolchain == "acme"
    assert sorted(each.name for each in only.composites) == ["acme.add", "acme.add", "acme.relu", "acme.relu"]


def test_toolchains_in_conflict_are_invalid_together() -> None:
    mod = program("def @main(%x: T) { Exp(Softmax(Exp(Softmax(%x)))) }")
    specs = (
        spec("one", graph_style_rule(lambda _: True)),
        spec("two", graph_style_rule(lambda _: True)),
        REFERENCE_SPEC,
        HOST_SPEC,
    )
    found = collage(mod, specs, MockCostEstimator({"one": 1, "two": 2}))
    space = PlacementSpace.of(found, frozenset({("one", "two")}))
    assert space is not None
    valid = [genome for genome in itertools.product(*space.choices) if space.decode(genome) is not None]
    assert valid == [(0,) * len(space.groups), (1,) * len(space.groups)]


def test_partitions_within_branches_stay_unless_the_branch_is_given_away() -> None:
    mod = program(BRANCHES)
    found = searched(
        mod, (spec("two", graph_style_rule(not_tanh)), some_specs()[0], REFERENCE_SPEC, HOST_SPEC)
    )
    space = PlacementSpace.of(found)
    assert space is not None
    for genome in itertools.product(*space.choices):
        verify(decoded(space, genome).applied(mod))


def test_nothing_to_choose_is_no_space() -> None:
    mod = program("def @main(%x: T) { Exp(%x) }")
    found = collage(mod, (some_specs()[0], REFERENCE_SPEC, HOST_SPEC), MockCostEstimator({"one": 1}))
    assert PlacementSpace.of(found) is None


class Latencies:
    """Planted: seconds of each operator by toolchain, and of each partition, end to end."""

    def __init__(self, own: dict[str, float], partition: float) -> None:
        self.own, self.partition = own, partition
        self.asked: list[Placement] = []

    def __call__(self, placements: Sequence[Placement]) -> list[float | None]:
        self.asked += placements
        return list(map(self.seconds, placements))

    def seconds(self, placement: Placement) -> float:
        return sum(
            self.partition
            + sum(self.own.get(f"{each.toolchain}:{name}", 1.0) for name in each.label.split("+"))
            for each in placement.partitions
        )


def test_evolution_finds_the_best_placement_that_sums_have_missed() -> None:
    """Costs of parts say `one` for all; end to end, `two` is far better at Softmax."""
    mod = program("def @main(%x: T) { Exp(Softmax(Exp(Softmax(Exp(Softmax(%x)))))) }")
    specs = (
        spec("one", graph_style_rule(lambda _: True)),
        spec("two", graph_style_rule(lambda _: True)),
        REFERENCE_SPEC,
        HOST_SPEC,
    )
    found = collage(mod, specs, MockCostEstimator({"one": 1, "two": 2}))
    space = PlacementSpace.of(found)
    assert space is not None
    fitness = Latencies({"two:Softmax": 0.1, "two:Exp": 3.0}, partition=0.2)
    evolved = evolve(space, [found.best], fitness, Random(0))
    everything = [space.decode(genome) for genome in itertools.product(*space.choices)]
    assert evolved.best[0].seconds == min(fitness.seconds(each) for each in everything if each is not None)
    assert evolved.best[0].seconds < fitness.seconds(found.best)
    digests = [each.candidate.digest for each in fitness.asked]
    assert len(digests) == len(set(digests)) == evolved.rated
    assert evolved.seeds == 1


def test_evolution_is_never_worse_than_seeds_that_no_genome_stands_for() -> None:
    """Neighbours of one toolchain that are apart: as fast as it gets here, and joined by every genome."""
    mod = program("def @main(%x: T) { Exp(Softmax(%x)) }")
    space = single_groups(mod)
    alone = spec("two", single_operators_rule(lambda _: True))
    apart = collage(mod, (alone, REFERENCE_SPEC, HOST_SPEC), MockCostEstimator({"two": 1})).best
    assert parts(apart.partitions) == [("two", "Softmax"), ("two", "Exp")]
    fitness = Latencies({"two:Exp": 0.1}, partition=-0.5)
    evolved = evolve(space, [apart], fitness, Random(0))
    assert evolved.best[0].placement == apart
    assert evolved.rated > 1


def test_evolution_never_returns_what_fails() -> None:
    """Exp fails on one toolchain, and the seed runs it there."""
    mod = program("def @main(%x: T) { Exp(Softmax(Exp(Softmax(%x)))) }")
    space = single_groups(mod)
    fitness = Latencies({"one:Exp": math.inf}, partition=0.5)
    seed = decoded(space, (0,) * len(space.groups))
    assert math.isinf(fitness.seconds(seed))
    evolved = evolve(space, [seed], fitness, Random(0))
    assert all(math.isfinite(each.seconds) for each in evolved.best)
    assert [name for name, _ in parts(evolved.best[0].placement.partitions)] == ["two"]


def test_no_time_leaves_nothing() -> None:
    mod = program(CHAIN)
    found = searched(mod)
    evolved = evolve(space_of(mod), [found.best], lambda asked: [None] * len(asked), Random(0))
    assert (evolved.best, evolved.seeds, evolved.is_cut_off) == ((), 0, True)
