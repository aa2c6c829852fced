"""What of a block can be given to a toolchain, as a sequence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.dataflow_node import BasicBlock
from intarsia.collage.graph.index_set import IndexSet
from intarsia.collage.rules.must_be_lowered import must_be_lowered, open_nodes
from intarsia.collage.rules.unit_support import UnitSupport
from intarsia.ir import Function, Tuple, TupleGetItem, Var


@dataclass(frozen=True, slots=True, eq=False)
class BlockItem:
    """A node of a block with all that belongs to it.

    Attributes:
        index: The node.
        inside: Its unit.
        needs: Indices of the items of the same block that it uses, ascending.
        is_supported: Whether the toolchain takes it.
        is_glue: Whether it is a tuple or the field of one, which no toolchain is needed for.
    """

    index: int
    inside: IndexSet
    needs: tuple[int, ...]
    is_supported: bool
    is_glue: bool


def block_items(graph: DataflowGraph, support: UnitSupport) -> list[list[BlockItem]]:
    """The items of each block that has any, each after what it needs.

    Branches of an If and bodies of a Let are blocks of their own, besides being a part of their owner's
    item. Linear in the graph, times the depth of such nesting.
    """
    by_block: dict[BasicBlock, list[int]] = {}
    for index in open_nodes(graph):
        block = graph[index].block
        if block is not None and not isinstance(graph[index].expr, (Var, Function)):
            by_block.setdefault(block, []).append(index)
    return [_items(graph, support, indices) for indices in by_block.values()]


def _items(graph: DataflowGraph, support: UnitSupport, indices: list[int]) -> list[BlockItem]:
    members = frozenset(indices)
    items: list[BlockItem] = []
    for index in indices:
        inside = graph.unit(index)
        used = {one for node in inside for one in graph.flow_inputs[node]}
        needs = tuple(sorted(one for one in used if one in members and one not in inside))
        is_glue = isinstance(graph[index].expr, (Tuple, TupleGetItem))
        is_left = not is_glue and index not in graph.owners and not must_be_lowered(graph[index].expr)
        items.append(BlockItem(index, inside, needs, not is_left and support.takes(index), is_glue))
    return items


def supported_runs(items: Iterable[BlockItem]) -> list[list[BlockItem]]:
    """Maximal sequences of supported items, in an order in which each is after what it needs.

    The order puts off refused items: all that needs no refused item comes first, then refused items, then all
    that needs those only, and so on. So any interval of a run is convex, and a refused item splits only what
    depends on it from what does not. One run, in the graph's order, if nothing is refused. Linear.
    """
    level: dict[int, int] = {}
    runs: dict[int, list[BlockItem]] = {}
    for item in items:
        below = max((level[one] for one in item.needs if one in level), default=0)
        level[item.index] = below + (not item.is_supported)
        if item.is_supported:
            runs.setdefault(level[item.index], []).append(item)
    return [runs[number] for number in sorted(runs)]


def held(graph: DataflowGraph, items: Sequence[BlockItem]) -> IndexSet:
    """The nodes of some consecutive items, without tuples and fields at the border.

    A function takes no tuples, and need not return one: fields of a tuple from outside, and tuples that
    nothing inside uses, stay outside.
    """
    inside = {item.index for item in items}
    for item in items:
        if isinstance(graph[item.index].expr, TupleGetItem) and inside.isdisjoint(item.needs):
            inside.discard(item.index)
    used = {need for item in items if item.index in inside for need in item.needs}
    for item in reversed(items):
        if isinstance(graph[item.index].expr, Tuple) and item.index not in used:
            inside.discard(item.index)
            used = {need for other in items if other.index in inside for need in other.needs}
    bits = 0
    for item in items:
        if item.index in inside:
            bits |= item.inside.bits
    return IndexSet(bits, len(graph))
