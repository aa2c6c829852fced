"""Covering problems: small random ones for brute force, large ones with the shapes of real networks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from intarsia.collage.search import INVALID, CoverProblem, Parameter, Piece, Transition
from intarsia.collage.search.footprint import Topology

Operands = tuple[tuple[int, ...], ...]


def plain_problem(operands: Operands, pieces: Sequence[Piece], **changes: object) -> CoverProblem:
    """Values of one byte, the last node is the result, no boundary costs."""
    specs = 1 + max((piece.spec for piece in pieces), default=0)
    fields: dict[str, object] = {
        "operands": operands,
        "sizes": (1.0,) * len(operands),
        "results": 1 << (len(operands) - 1),
        "pieces": tuple(pieces),
        "dispatch": (0.0,) * specs,
        "transition": Transition.free(specs),
    }
    return CoverProblem(**{**fields, **changes})  # type: ignore[arg-type]  # fields are named as they are


def random_problem(seed: int, most_nodes: int = 10, *, whole_costs: bool = False) -> CoverProblem:
    """A random graph with three specs, boundary costs, pieces of several exits, invalid ones, conflicts.

    Whole costs are small integers: many covers tie.
    """
    rng = random.Random(seed)
    size = rng.randint(1, most_nodes)
    operands = tuple(
        tuple(sorted(rng.sample(range(node), min(node, rng.choice((0, 1, 1, 1, 2, 2, 3))))))
        for node in range(size)
    )

    def seconds(most: float) -> float:
        return float(rng.randint(0, round(most))) if whole_costs else rng.uniform(0, most)

    def matrix(most: float) -> list[list[float]]:
        return [[seconds(most) for _ in range(4)] for _ in range(4)]

    fixed = matrix(rng.choice((0, 1, 4, 10)))
    if rng.random() < 0.3:
        fixed[1] = fixed[2]
    transition = Transition.of(fixed, matrix(rng.choice((0, 1))))
    bare = CoverProblem(operands, (1.0,) * size, 0, (), (0.0,) * 3, transition)
    nodes = range(size)
    conflicts = [pair for pair in ((0, 1), (1, 2), (0, 2)) if rng.random() < 0.15]
    parameters = [Parameter(rng.randint(0, 3), rng.randrange(1 << size)) for _ in range(rng.randint(0, 3))]
    return CoverProblem(
        operands,
        tuple(float(rng.randint(0, 4)) for _ in nodes),
        rng.randrange(1 << size) | 1 << (size - 1),
        tuple(
            Piece(mask, spec, INVALID if rng.random() < 0.08 else seconds(4 * mask.bit_count() ** 0.7))
            for mask, spec in _random_masks(Topology(bare), rng, size)
        ),
        tuple(seconds(2) for _ in range(3)),
        transition,
        tuple(parameters),
        frozenset(conflicts),
    )


def _random_masks(topology: Topology, rng: random.Random, size: int) -> Iterator[tuple[int, int]]:
    """Most single nodes, and convex hulls of a few random nodes."""
    for node in range(size):
        yield from ((1 << node, spec) for spec in range(3) if rng.random() < 0.6)
    for _ in range(rng.randint(0, 3 * size)):
        mask = 0
        for node in rng.sample(range(size), min(size, rng.randint(2, 3))):
            mask |= 1 << node
        yield convex_hull(topology, mask), rng.randrange(3)


def convex_hull(topology: Topology, mask: int) -> int:
    """The nodes, and everything on a path between two of them."""
    return mask | (topology.below(mask) & topology.above(mask))


def residual_chain(size: int) -> Operands:
    """Blocks of seven nodes, the sixth an addition of the chain and the block's input.

    In every fourth block the shortcut has a node of its own.
    """
    operands: list[tuple[int, ...]] = [()]
    while len(operands) < size:
        entry = shortcut = len(operands) - 1
        if len(operands) // 7 % 4 == 3:
            operands.append((entry,))
            shortcut = entry + 1
        last = entry
        for _ in range(5):
            operands.append((last,))
            last = len(operands) - 1
        operands.append(tuple(sorted((last, shortcut))))
        operands.append((len(operands) - 1,))
    return tuple(operands[:size])


def inception(size: int, width: int = 4) -> Operands:
    """Modules of `width` branches of two to five nodes and a node that joins them."""
    operands: list[tuple[int, ...]] = [()]
    while len(operands) < size:
        entry = len(operands) - 1
        ends = []
        for branch in range(width):
            last = entry
            for _ in range(2 + (branch + entry) % 4):
                operands.append((last,))
                last = len(operands) - 1
            ends.append(last)
        operands.append(tuple(ends))
    return tuple(operands[:size])


def network_problem(operands: Operands, seed: int = 0, depth: int = 8, groups: int = 24) -> CoverProblem:
    """Three specs over a graph, with mock costs in seconds.

    Each spec has single nodes and fused groups of one exit, up to `depth` nodes, at most `groups` for each
    exit; specs 1 and 2 are graph-style and also have segments between cut points. An operator takes 50 to
    500 us, by one of six kinds; specs differ up to four times by kind and somewhat by node; the k-th node
    of a piece saves a part that depends on the spec.
    """
    rng = random.Random(seed)
    size = len(operands)
    work = [rng.choice((50e-6, 80e-6, 120e-6, 200e-6, 300e-6, 500e-6)) for _ in range(size)]
    kinds = [rng.randrange(6) for _ in range(size)]
    factors = [[rng.uniform(0.5, 2.0) for _ in range(6)] for _ in range(3)]
    costs = [
        [work[node] * factors[spec][kinds[node]] * rng.uniform(0.9, 1.1) for node in range(size)]
        for spec in range(3)
    ]
    sizes = tuple(float(rng.choice((1, 2, 4, 8)) * 50_000) for _ in range(size))
    transition = Transition.of(
        [[5e-6 if one == other else 20e-6 for other in range(4)] for one in range(4)],
        [[0.0 if one == other else 1e-10 for other in range(4)] for one in range(4)],
    )
    bare = CoverProblem(operands, sizes, 1 << (size - 1), (), (8e-6, 5e-6, 6e-6), transition)
    topology = Topology(bare)
    fused = [mask for exit_node in range(size) for mask in _groups(topology, exit_node, depth, groups)]
    segments = list(_segments(topology, operands))
    saved = (0.10, 0.15, 0.20)

    def piece(mask: int, spec: int) -> Piece:
        nodes = _bits(mask)
        discount = 1 - saved[spec] * (1 - 1 / len(nodes))
        return Piece(
            mask, spec, sum(costs[spec][node] for node in nodes) * discount * rng.uniform(0.97, 1.03)
        )

    pieces = [piece(mask, spec) for mask in fused for spec in range(3)]
    pieces += [piece(mask, spec) for mask in segments for spec in (1, 2)]
    return CoverProblem(
        operands, sizes, 1 << (size - 1), tuple(pieces), (8e-6, 5e-6, 6e-6), transition, (Parameter(1e6, 1),)
    )


def _bits(mask: int) -> list[int]:
    return [index for index, bit in enumerate(reversed(f"{mask:b}")) if bit == "1"]


def _groups(topology: Topology, exit_node: int, depth: int, most: int) -> list[int]:
    """Sets of one exit, grown towards the operands, small ones first."""
    found = [1 << exit_node]
    seen = set(found)
    for mask in found:
        if mask.bit_count() == depth:
            break
        inputs = 0
        for node in _bits(mask):
            inputs |= topology.operands[node]
        for value in _bits(inputs & ~mask):
            grown = mask | 1 << value
            if not topology.consumers[value] & ~mask and grown not in seen and len(found) < most:
                seen.add(grown)
                found.append(grown)
    return found


def _segments(topology: Topology, operands: Operands) -> Iterator[int]:
    """Between two cut points: 1, 2, 4, ... of them apart, from the first one, to the last one."""
    size = len(operands)
    last_use = [max(_bits(consumers), default=node) for node, consumers in enumerate(topology.consumers)]
    cuts, reach = [0], 0
    for node in range(size):
        if reach <= node:  # no earlier value is needed beyond this node
            cuts.append(node + 1)
        reach = max(reach, last_use[node])
    last = len(cuts) - 1
    pairs = {(0, end) for end in range(1, last + 1)} | {(start, last) for start in range(last)}
    pairs |= {
        (start, start + (1 << k)) for start in range(last) for k in range(12) if start + (1 << k) <= last
    }
    for start, end in sorted(pairs):
        first, stop = cuts[start], cuts[end]
        if stop - first > 1:
            yield ((1 << (stop - first)) - 1) << first
