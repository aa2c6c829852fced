"""Groups of operators that are given to a toolchain together: the genes of an evolution.

As in the paper, groups are what its first level never split (ResNet-50: 169 operators, 19 groups), and here
cheap neighbours besides, until there are few enough.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.block_item import BlockItem
from intarsia.op import OpPatternKind

_STEPS = 40
"""Halvings of the interval in which the largest share of a group is searched."""


@dataclass(frozen=True, slots=True)
class OperatorGroup:
    """Operators that are given away together.

    Attributes:
        items: Positions of its items, ascending; they need not be connected.
        choices: Positions of the specs that can run all of them, at least two.
        share: Their share of the program's time, as far as it is known without measuring.
    """

    items: tuple[int, ...]
    choices: tuple[int, ...]
    share: float


def operator_groups(
    graph: DataflowGraph,
    items: Sequence[BlockItem],
    choices: Mapping[int, tuple[int, ...]],
    labels: Sequence[Hashable],
    shares: Mapping[int, float],
    most: int,
) -> tuple[OperatorGroup, ...]:
    """Group the items that there is a choice for.

    * An operator that follows another one, element by element, and is all that uses it, goes with it: a
      convolution with the addition and the activation after it.
    * What has different labels, or other choices, is kept apart.
    * If there are more than `most` groups, neighbours of the same label and choices are joined, so that the
      group with the largest share is as small as it can be; if that does not help, labels are given up.

    Linear in the items, but for sorting.

    Args:
        graph: Their graph.
        items: Items of one block, in order.
        choices: Positions of specs, for each item that has a choice.
        labels: For each item, such as the partitions that it is in, in covers that are to be kept apart.
        shares: Share of each node in the time of all.
        most: The number of groups that is wanted.
    """
    fused = _fused(graph, items, choices, labels)
    groups = [
        OperatorGroup(tuple(own), choices[own[0]], sum(_share(items[one], shares) for one in own))
        for own in fused
    ]
    keyed: list[Hashable] = [(choices[group.items[0]], labels[group.items[0]]) for group in groups]
    if len(groups) > most:
        groups, keyed = _joined(groups, keyed, most)
    if len(groups) > most:
        groups, _ = _joined(groups, [group.choices for group in groups], most)
    return tuple(groups)


def _fused(
    graph: DataflowGraph,
    items: Sequence[BlockItem],
    choices: Mapping[int, tuple[int, ...]],
    labels: Sequence[Hashable],
) -> list[list[int]]:
    """Positions of items in groups, in order of their first ones."""
    position_of = {item.index: position for position, item in enumerate(items)}
    users = [0] * len(items)
    for item in items:
        for need in item.needs:
            users[position_of[need]] += 1
    leader: dict[int, int] = {}
    groups: dict[int, list[int]] = {}
    for position, item in enumerate(items):
        if position not in choices:
            continue
        leader[position] = position
        for need in reversed(item.needs):
            below = position_of[need]
            is_alike = choices.get(below) == choices[position] and labels[below] == labels[position]
            if is_alike and users[below] == 1 and _is_pair(graph, items[below], item):
                leader[position] = leader[below]
                break
        groups.setdefault(leader[position], []).append(position)
    return list(groups.values())


def _is_pair(graph: DataflowGraph, first: BlockItem, second: BlockItem) -> bool:
    kinds = graph.kinds
    is_fusable = kinds[first.index] <= OpPatternKind.OUT_ELEMWISE_FUSABLE
    return is_fusable and kinds[second.index] <= OpPatternKind.INJECTIVE


def _share(item: BlockItem, shares: Mapping[int, float]) -> float:
    return sum(shares.get(index, 0.0) for index in item.inside)


def _joined(
    groups: Sequence[OperatorGroup], keys: Sequence[Hashable], most: int
) -> tuple[list[OperatorGroup], list[Hashable]]:
    """Neighbours with equal keys, joined up to the least share with which at most so many are left."""
    low, high = 0.0, sum(group.share for group in groups) or 1.0
    best = _joined_to(groups, keys, high)
    if len(best[0]) > most:
        return best
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = _joined_to(groups, keys, middle)
        if len(found[0]) <= most:
            best, high = found, middle
        else:
            low = middle
    return best


def _joined_to(
    groups: Sequence[OperatorGroup], keys: Sequence[Hashable], bound: float
) -> tuple[list[OperatorGroup], list[Hashable]]:
    """Neighbours with equal keys, joined as long as their share stays within a bound."""
    joined: list[OperatorGroup] = []
    joined_keys: list[Hashable] = []
    for group, key in zip(groups, keys, strict=True):
        if joined and joined_keys[-1] == key and joined[-1].share + group.share <= bound * (1 + 1e-9):
            last = joined[-1]
            joined[-1] = OperatorGroup(
                tuple(sorted((*last.items, *group.items))), last.choices, last.share + group.share
            )
        else:
            joined.append(group)
            joined_keys.append(key)
    return joined, joined_keys
