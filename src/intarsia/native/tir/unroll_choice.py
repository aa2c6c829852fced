"""The choice of small loops to unroll without a mark: busiest first, within a budget of stores."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import count
from typing import NamedTuple, assert_never

from intarsia.ir.prim_func import Allocate, Block, For, ForKind, IfThenElse, KernelStatement, Statement, Store
from intarsia.native.tir.rewriting import block_like, flat, with_body, with_branches


@dataclass(frozen=True, slots=True)
class UnrollLimits:
    """Limits for unrolling loops that are not marked.

    Attributes:
        max_step: Most stores that an unrolled serial loop carries out; 0 to unroll none.
        max_depth: Most unrolled loops inside each other.
        max_stores: Most stores of a function afterwards, if it has fewer with the marked loops unrolled.
    """

    max_step: int
    max_depth: int
    max_stores: int


def marked_loops(body: Statement, limits: UnrollLimits) -> Statement:
    """Return a body with small serial loops marked as `unrolled`.

    Borders that were cut off a loop come to as much code as its main part, and are seldom run. So the loops
    in which most stores are carried out come first; of one for which there is no room left, those inside are
    tried. The counts are of stores, before anything is copied.

    Args:
        body: Body of a loop function.
        limits: Limits for loops that are not marked.
    """
    walker = _Counter(limits)
    whole = walker.visit(body, 1, 1)
    if not whole.loops:
        return body
    return _Marker(_choose_loops(whole.loops, limits.max_stores - whole.least)).visit(body)


class _SmallLoop(NamedTuple):
    """A loop that may be unrolled, with all small ones inside.

    Attributes:
        rank: Sort key, lowest first: minus the number of stores that the loop carries out in all.
        number: Position among all loops, in program order; also breaks ties.
        growth: Number of stores that unrolling adds to the function.
        inside: The small loops directly inside.
    """

    rank: int
    number: int
    growth: int
    inside: tuple[_SmallLoop, ...]


class _Counted(NamedTuple):
    """What the choice needs to know of a statement.

    Attributes:
        steps: Number of stores that it carries out; those of a vectorised loop count once.
        least: Number of stores in its text with the marked loops unrolled.
        depth: Depth of small loops inside each other.
        has_loop: Whether there is a loop in it that is neither vectorised, nor marked, nor small.
        loops: The outermost small ones.
    """

    steps: int
    least: int
    depth: int = 0
    has_loop: bool = False
    loops: tuple[_SmallLoop, ...] = ()


def _summed(parts: Iterable[_Counted]) -> _Counted:
    counts = tuple(parts)
    return _Counted(
        sum(part.steps for part in counts),
        sum(part.least for part in counts),
        max((part.depth for part in counts), default=0),
        any(part.has_loop for part in counts),
        tuple(loop for part in counts for loop in part.loops),
    )


class _Counter:
    """Finds small loops, and counts stores."""

    def __init__(self, limits: UnrollLimits) -> None:
        self.limits, self.numbers = limits, count()

    def visit(self, statement: Statement, runs: int, copies: int) -> _Counted:
        """Count a statement that runs `runs` times and is copied `copies` times by marked loops around it."""
        match statement:
            case Store() | KernelStatement():
                return _Counted(1, 1)
            case Block():
                return _summed([self.visit(inner, runs, copies) for inner in flat(statement)])
            case For():
                return self.count_loop(statement, runs, copies)
            case Allocate():
                return self.visit(statement.body, runs, copies)
            case IfThenElse():
                both = (statement.then, statement.otherwise)
                return _summed([self.visit(branch, runs, copies) for branch in both if branch is not None])
            case _:
                assert_never(statement)

    def count_loop(self, loop: For, runs: int, copies: int) -> _Counted:
        number, extent = next(self.numbers), loop.extent
        if loop.kind is ForKind.VECTORIZED:
            return self.visit(loop.body, runs, copies)
        is_marked = loop.kind is ForKind.UNROLLED
        inside = self.visit(loop.body, runs * extent, copies * extent if is_marked else copies)
        steps = extent * inside.steps
        if is_marked:
            return inside._replace(steps=steps, least=extent * inside.least)
        is_small = (
            loop.kind is ForKind.SERIAL
            and loop.count is None
            and steps <= self.limits.max_step
            and inside.depth < self.limits.max_depth
            and not inside.has_loop
        )
        if not is_small:
            return inside._replace(steps=steps, has_loop=True)
        small = _SmallLoop(-runs * steps, number, copies * (steps - inside.least), inside.loops)
        return _Counted(steps, inside.least, inside.depth + 1, loops=(small,))


def _choose_loops(loops: Iterable[_SmallLoop], room: int) -> frozenset[int]:
    """Return the numbers of the loops to unroll within a budget of `room` more stores."""
    # A loop for which there is no room gives way to the loops inside, which enter the queue by their rank.
    waiting, unrolled = list(loops), set[int]()
    heapify(waiting)
    while waiting:
        loop = heappop(waiting)
        if loop.growth <= max(room, 0):
            room -= loop.growth
            unrolled |= _numbers(loop)
        else:
            for inner in loop.inside:
                heappush(waiting, inner)
    return frozenset(unrolled)


def _numbers(loop: _SmallLoop) -> set[int]:
    """Return the numbers of a small loop and of all small loops inside."""
    numbers, stack = set[int](), [loop]
    while stack:
        inner = stack.pop()
        numbers.add(inner.number)
        stack.extend(inner.inside)
    return numbers


class _Marker:
    """Marks loops by their numbers: identity is no key, since equal parts of a function may be one object."""

    def __init__(self, chosen: Collection[int]) -> None:
        self.chosen, self.numbers = chosen, count()

    def visit(self, statement: Statement) -> Statement:
        match statement:
            case Store() | KernelStatement():
                return statement
            case Block():
                return block_like(statement, [self.visit(inner) for inner in flat(statement)])
            case For():
                is_chosen = next(self.numbers) in self.chosen
                after = with_body(statement, self.visit(statement.body))
                assert isinstance(after, For)
                return replace(after, kind=ForKind.UNROLLED) if is_chosen else after
            case Allocate():
                return with_body(statement, self.visit(statement.body))
            case IfThenElse():
                then = self.visit(statement.then)
                otherwise = None if statement.otherwise is None else self.visit(statement.otherwise)
                return with_branches(statement, then, otherwise)
            case _:
                assert_never(statement)
