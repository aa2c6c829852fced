"""Placements of a program as genomes: a toolchain for each group of operators of @main."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.candidates.cost import CostKind
from intarsia.collage.collage import CollageResult
from intarsia.collage.conflicts import Conflicts, are_in_conflict
from intarsia.collage.costs.work_shares import work_shares
from intarsia.collage.cover_of_graph import partition_of
from intarsia.collage.evolution.evolution import Genome
from intarsia.collage.evolution.operator_groups import OperatorGroup, operator_groups
from intarsia.collage.function_cover import FunctionCover
from intarsia.collage.gather_specs import HOST
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.placement.placement import Partition, Placement, stable_nodes
from intarsia.collage.rules.block_item import BlockItem, block_items
from intarsia.collage.rules.must_be_lowered import must_be_lowered
from intarsia.collage.rules.unit_support import UnitSupport
from intarsia.collage.sub_graph import NestedSubGraph, SubGraph, quotient_cycle
from intarsia.ir import TupleGetItem
from intarsia.passes.regions.acyclic_groups import acyclic_groups

MAIN: Final = "main"

MOST_GROUPS: Final = 32
"""Most groups: more make more placements than end-to-end measurements can distinguish in minutes."""


@dataclass(frozen=True, eq=False)
class PlacementSpace:
    """Placements that differ in the toolchains of groups of operators.

    Attributes:
        graph: The graph of @main.
        items: Items of its body that can be placed, in order.
        specs: Specs of the toolchains that may run parts of it.
        groups: The genes; the values of a gene are the `choices` of its group.
        defaults: The spec of each item that is in no group; None for what is left to the host.
        composites: For each spec that runs groups of operators as one, those it offers, large ones first.
        kept: Partitions of other functions, and within branches: they stay as they are.
        conflicts: Pairs of toolchains that must not occur together.
    """

    graph: DataflowGraph
    items: tuple[BlockItem, ...]
    specs: tuple[PartitionSpec, ...]
    groups: tuple[OperatorGroup, ...]
    defaults: tuple[int | None, ...]
    composites: Mapping[int, tuple[NestedSubGraph, ...]]
    kept: tuple[Partition, ...]
    conflicts: Conflicts

    @classmethod
    def of(
        cls,
        collage: CollageResult,
        conflicts: Conflicts = frozenset(),
        most: int = MOST_GROUPS,
    ) -> PlacementSpace | None:
        """The space around what a search of covers has found; None if nothing in @main can be chosen.

        Args:
            collage: Its covers' borders are borders of groups, as long as there are not too many.
            conflicts: Pairs of toolchains, each in order of the alphabet, that must not occur together.
            most: The number of groups that is wanted.
        """
        cover = next((function for function in collage.functions if function.name == MAIN), None)
        if cover is None or not cover.candidates:
            return None
        graph = cover.candidates[0].sub_graph.graph
        items = _outer_items(graph)
        specs = tuple(dict.fromkeys(piece.spec for piece in cover.candidates if piece.spec.name != HOST))
        able = _able(cover, specs)
        placements = [_owners(graph, items, record.placement.partitions) for record in collage.placements]
        choices: dict[int, tuple[int, ...]] = {}
        defaults: list[int | None] = []
        for position, item in enumerate(items):
            able_specs = tuple(number for number, nodes in enumerate(able) if item.index in nodes)
            is_left = not must_be_lowered(graph[item.index].expr) and placements[0][position] is None
            default = None if item.is_glue or is_left or not able_specs else able_specs[0]
            if default is not None and len(able_specs) > 1:
                choices[position] = able_specs
            defaults.append(default)
        labels = list(zip(*placements, strict=True))
        groups = operator_groups(graph, items, choices, labels, work_shares(graph), most)
        if not groups:
            return None
        kept = _kept(graph, items, collage.best.partitions)
        composites = _composites(cover, specs)
        return cls(graph, items, specs, groups, tuple(defaults), composites, kept, conflicts)

    @property
    def choices(self) -> tuple[tuple[int, ...], ...]:
        """The values of each gene."""
        return tuple(group.choices for group in self.groups)

    def uniform(self, spec: int, other: Genome) -> Genome:
        """The genome that gives one spec all that it can run, and is as another one elsewhere."""
        pairs = zip(self.groups, other, strict=True)
        return tuple(spec if spec in group.choices else gene for group, gene in pairs)

    def encode(self, placement: Placement) -> Genome:
        """The genome nearest to a placement: for each group, the spec that runs most of its operators."""
        numbers = {str(spec.target): number for number, spec in enumerate(self.specs)}
        owners = _owners(self.graph, self.items, placement.partitions)
        targets = [
            None if owner is None else numbers.get(placement.partitions[owner].target) for owner in owners
        ]
        genome = []
        for group in self.groups:
            votes = [sum(targets[item] == choice for item in group.items) for choice in group.choices]
            genome.append(group.choices[votes.index(max(votes))])
        return tuple(genome)

    def decode(self, genome: Genome) -> Placement | None:
        """The placement of a genome: adjacent items of one spec are one partition, unless that makes a cycle.

        Returns:
            None if the genome is invalid: a partition can become no function, or has operators that its
            toolchain runs only in groups which the partition does not hold; or toolchains are in conflict.
        """
        owner: list[int | None] = list(self.defaults)
        for group, gene in zip(self.groups, genome, strict=True):
            for position in group.items:
                owner[position] = gene
        if self._has_conflict({number for number in owner if number is not None}):
            return None
        candidates: list[CandidatePartition] = []
        for number, members in self._regions(self._with_glue(owner)):
            candidate = self._candidate(number, members)
            if candidate is None:
                return None
            candidates.append(candidate)
        if quotient_cycle(self.graph, [candidate.sub_graph.inside for candidate in candidates]):
            return None
        candidates.sort(key=lambda candidate: candidate.sub_graph.inside)
        partitions = tuple(partition_of(candidate, MAIN) for candidate in candidates)
        return Placement((*partitions, *self._kept_beside(owner)))

    def is_whole(self, placement: Placement) -> bool:
        """Whether one partition holds all that a toolchain has to compute."""
        return is_whole(self.graph, placement)

    def _with_glue(self, owner: Sequence[int | None]) -> list[int | None]:
        """Fields go with the call that they are of, tuples with the call that uses them."""
        position_of = {item.index: position for position, item in enumerate(self.items)}
        owners = list(owner)
        for position in reversed(range(len(self.items))):
            for one in self.items[position].needs:
                if owners[position] is not None and self._is_tuple(position_of[one]):
                    owners[position_of[one]] = owners[position]
        for position, item in enumerate(self.items):
            if isinstance(self.graph[item.index].expr, TupleGetItem) and item.needs:
                owners[position] = owners[position_of[item.needs[0]]]
        return owners

    def _is_tuple(self, position: int) -> bool:
        item = self.items[position]
        return item.is_glue and not isinstance(self.graph[item.index].expr, TupleGetItem)

    def _regions(self, owner: Sequence[int | None]) -> Iterable[tuple[int, list[int]]]:
        place = {item.index: position for position, item in enumerate(self.items)}
        needs = [[place[one] for one in item.needs] for item in self.items]
        for members in acyclic_groups(owner, needs):
            number = owner[members[0]]
            if number is not None:
                yield number, members

    def _candidate(self, number: int, members: Sequence[int]) -> CandidatePartition | None:
        bits = self.graph.set_of()
        for position in members:
            bits |= self.items[position].inside
        nested = self._tiles(number, members, SubGraph.of(self.graph, bits))
        if nested is None:
            return None
        sub_graph = SubGraph.of(self.graph, bits, nested)
        if sub_graph.structure_complaint is not None:
            return None
        return CandidatePartition(sub_graph, self.specs[number])

    def _tiles(
        self, number: int, members: Sequence[int], region: SubGraph
    ) -> tuple[NestedSubGraph, ...] | None:
        """The composites that a region is made of, if its spec has any; None if some operator is in none."""
        offered = self.composites.get(number)
        if offered is None:
            return ()
        chosen: list[NestedSubGraph] = []
        covered = self.graph.set_of()
        for candidate in offered:
            inside = candidate.sub_graph.inside
            if inside.is_subset(region.inside) and inside.is_disjoint(covered):
                chosen.append(candidate)
                covered |= inside - self.graph.everywhere
        calls = (self.items[one].index for one in members if not self.items[one].is_glue)
        return tuple(chosen) if all(index in covered for index in calls) else None

    def _has_conflict(self, used: set[int]) -> bool:
        names = {self.specs[number].toolchain for number in used}
        return are_in_conflict(names, names | {each.toolchain for each in self.kept}, self.conflicts)

    def _kept_beside(self, owner: Sequence[int | None]) -> tuple[Partition, ...]:
        """Partitions within branches go when the branches themselves are given to a toolchain."""
        numbered = stable_nodes(self.graph)
        given = self.graph.set_of()
        for item, number in zip(self.items, owner, strict=True):
            if number is not None:
                given |= item.inside
        return tuple(
            each for each in self.kept if each.function != MAIN or numbered[each.nodes[0]] not in given
        )


def is_whole(graph: DataflowGraph, placement: Placement) -> bool:
    """Whether one partition of @main holds all that a toolchain has to compute, and there is no other."""
    if len(placement.partitions) != 1 or placement.partitions[0].function != MAIN:
        return False
    numbered = stable_nodes(graph)
    inside = {numbered[node] for node in placement.partitions[0].nodes if node < len(numbered)}
    return all(node.index in inside for node in graph if must_be_lowered(node.expr))


def _outer_items(graph: DataflowGraph) -> tuple[BlockItem, ...]:
    """The items of the function's body, those of branches and bodies within not."""
    for items in block_items(graph, UnitSupport(graph, lambda _: True, "")):
        block = graph[items[0].index].block
        if block is not None and block.opener is None:
            return tuple(items)
    return ()


def _able(cover: FunctionCover, specs: Sequence[PartitionSpec]) -> list[set[int]]:
    """The nodes that each spec seems to be able to run: those of candidates that did not fail."""
    able: list[set[int]] = [set() for _ in specs]
    numbers = {spec: number for number, spec in enumerate(specs)}
    for candidate in cover.candidates:
        estimate = cover.estimates.get(candidate)
        has_failed = estimate is not None and estimate.cost.kind is CostKind.INVALID
        if candidate.spec in numbers and not has_failed:
            able[numbers[candidate.spec]].update(candidate.sub_graph.inside)
    return able


def _owners(
    graph: DataflowGraph, items: Sequence[BlockItem], partitions: Sequence[Partition]
) -> list[int | None]:
    """For each item, the position of the partition that it is in."""
    numbered = stable_nodes(graph)
    owner = {
        numbered[node]: position
        for position, partition in enumerate(partitions)
        if partition.function == MAIN
        for node in partition.nodes
        if node < len(numbered)
    }
    return [owner.get(item.index) for item in items]


def _kept(
    graph: DataflowGraph, items: Sequence[BlockItem], partitions: Sequence[Partition]
) -> tuple[Partition, ...]:
    outer = {owner for owner in _owners(graph, items, partitions) if owner is not None}
    return tuple(each for position, each in enumerate(partitions) if position not in outer)


def _composites(
    cover: FunctionCover, specs: Sequence[PartitionSpec]
) -> dict[int, tuple[NestedSubGraph, ...]]:
    composites: dict[int, dict[NestedSubGraph, None]] = {}
    for candidate in cover.candidates:
        inner = _composites_of(candidate.sub_graph)
        if inner and candidate.spec in specs:
            composites.setdefault(specs.index(candidate.spec), {}).update(dict.fromkeys(inner))
    return {
        number: tuple(
            sorted(own, key=lambda candidate: (-len(candidate.sub_graph.inside), candidate.sub_graph.inside))
        )
        for number, own in composites.items()
    }


def _composites_of(sub_graph: SubGraph) -> list[NestedSubGraph]:
    composites: list[NestedSubGraph] = []
    for nested in sub_graph.nested:
        composites += [nested] if "Composite" in nested.attrs else _composites_of(nested.sub_graph)
    return composites
