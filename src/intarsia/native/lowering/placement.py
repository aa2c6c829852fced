"""Where a stage is computed, over which part of its tensors, and by which loops."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from intarsia.ir import DType
from intarsia.ir.loop_walk import operands
from intarsia.ir.prim_func import Arith, ArithOp, Buffer, Literal, LoopVar, Scalar
from intarsia.native.dag.loop_name import loop_name
from intarsia.native.loop_state.iterator import IteratorAnnotation
from intarsia.native.loop_state.stage import Stage
from intarsia.native.lowering.loop_values import Check, loop_extents, loop_values
from intarsia.native.lowering.names import loop_name as plain_name
from intarsia.native.lowering.region import Interval
from intarsia.native.te import ComputeOp, ExternOp, IterKind
from intarsia.native.tir.affine import Affine, Ranges, as_scalar, bounds
from intarsia.support.post_order import post_order_of

Path = tuple[tuple[int, int], ...]
"""Loops from the outside in, each a stage and the loop's place in it."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of a stage; one that counts once is left out, and its value is 0."""

    name: str
    var: LoopVar
    extent: int
    kind: IterKind
    annotation: IteratorAnnotation

    @property
    def value(self) -> Affine:
        """Its value."""
        return Affine() if self.extent == 1 else Affine({self.var: 1})


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition of an element.

    Attributes:
        slack: It holds if this is not negative.
        loop_vars: What it depends on.
    """

    slack: Affine
    loop_vars: frozenset[LoopVar]

    @property
    def cond(self) -> Scalar:
        """The condition, with the constant on one side."""
        growing = {scalar: factor for scalar, factor in self.slack.terms.items() if factor > 0}
        if len(growing) == len(self.slack.terms):
            least = Literal(-self.slack.constant, DType.INT64)
            return Arith(ArithOp.LE, (least, as_scalar(Affine(growing), DType.INT64)))
        falling = {scalar: -factor for scalar, factor in self.slack.terms.items() if factor < 0}
        limit = as_scalar(Affine(growing, self.slack.constant + 1), DType.INT64)
        return Arith(ArithOp.LT, (as_scalar(Affine(falling), DType.INT64), limit))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is around a stage.

    Attributes:
        path: The loops around it.
        ranges: Of their variables.
        guards: What holds there.
    """

    path: Path
    ranges: Ranges
    guards: tuple[Guard, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """A stage that is computed for itself.

    Attributes:
        stage: The stage.
        around: What is around it.
        loops: All its loops, outermost first.
        ranges: Of its loops' variables and of those around.
        buffers: Where its results are stored: its tensors, or tiles of them.
        begins: The index of each dimension where the tile begins; 0 of a whole tensor.
        indices: Of the element inside the buffers.
        axes: The values of the axes, by the names of their variables.
        guards: What must hold for an element to be one of the tensors' and the tile's.
        extents: How often each loop counts, those too that were split or fused since.
    """

    stage: Stage
    around: Surroundings
    loops: tuple[Loop, ...]
    ranges: Ranges
    buffers: tuple[Buffer, ...]
    begins: tuple[Affine, ...]
    indices: tuple[Affine, ...]
    axes: dict[str, Affine]
    guards: tuple[Guard, ...]
    extents: dict[str, int]

    def inside(self, stage_id: int, loop: int) -> Surroundings:
        """What is around a stage inside one of the loops."""
        bound = {each.var for each in self.loops[loop + 1 :]}
        ranges = {var: found for var, found in self.ranges.items() if var not in bound}
        path = (*self.around.path, *((stage_id, place) for place in range(loop + 1)))
        holding = (guard for guard in self.guards if not guard.loop_vars & bound)
        return Surroundings(path, ranges, (*self.around.guards, *holding))


OUTSIDE = Surroundings((), {}, ())


def place(stage: Stage, around: Surroundings, tile: Sequence[Interval] | None) -> Placement:
    """A stage where it is computed.

    Args:
        stage: The stage, not inlined.
        around: What is around it.
        tile: Which part of its tensors is computed there; None for all of them.

    Raises:
        UsageError: A split length is not chosen.
    """
    op = stage.op
    if isinstance(op, ExternOp) or not isinstance(op, ComputeOp):
        return Placement(stage, around, (), around.ranges, op.buffers, (), (), {}, (), {})
    tile = [Interval(Affine(), axis.extent) for axis in op.axes] if tile is None else tile
    counts = [part.extent for part in tile]
    sizes = [*counts, *(axis.extent for axis in op.reduce_axes)]
    names = [loop_name(axis.name) for axis in (*op.axes, *op.reduce_axes)]
    extents = loop_extents(stage.relations, dict(zip(names, sizes, strict=True)))
    loops = _loops(stage, extents, {var.name for var in around.ranges})
    counted = {loop.var: (0, max(0, loop.extent - 1)) for loop in loops if loop.extent != 1}
    ranges = {**around.ranges, **counted}
    given = {loop.name: loop.value for loop in loops}
    values, checks = loop_values(stage.relations, extents, given, ranges)
    indices = [values[name] for name in names]
    begins = tuple(part.begin for part in tile)
    rank = len(op.axes)
    axes = {
        axis.name: part.begin.plus(index) if part is not None else index
        for axis, index, part in zip(
            (*op.axes, *op.reduce_axes), indices, (*tile, *([None] * len(op.reduce_axes))), strict=True
        )
    }
    guards = checked(checks, ranges, around.guards)
    guards += clipped(
        begins, [axes[axis.name] for axis in op.axes], op.shape, ranges, (*around.guards, *guards)
    )
    whole = all(
        not part.begin.terms and not part.begin.constant and part.extent == extent
        for part, extent in zip(tile, op.shape, strict=True)
    )
    buffers = op.buffers if whole else tuple(Buffer(b.name, tuple(counts), b.dtype) for b in op.buffers)
    return Placement(
        *(stage, around, loops, ranges, buffers, begins, tuple(indices[:rank]), axes, tuple(guards), extents)
    )


def _loops(stage: Stage, extents: dict[str, int], taken: Collection[str]) -> tuple[Loop, ...]:
    used = set(taken)
    loops = []
    for each in stage.iters:
        name = plain_name(each.name, used)
        used.add(name)
        loops.append(Loop(each.name, LoopVar(name), extents[each.name], each.kind, each.annotation))
    return tuple(loops)


def checked(checks: Iterable[Check], ranges: Ranges, known: Iterable[Guard]) -> list[Guard]:
    """What the splits need, as far as it is not known."""
    needed = (Affine({}, check.extent - 1).plus(check.value, -1) for check in checks)
    return _guards(needed, ranges, known)


def clipped(
    begins: Sequence[Affine],
    axes: Sequence[Affine],
    shape: Sequence[int],
    ranges: Ranges,
    known: Iterable[Guard],
) -> list[Guard]:
    """What keeps an element of a tile that moves inside its tensor, as far as it is not known."""
    needed = []
    for begin, value, extent in zip(begins, axes, shape, strict=True):
        if begin.terms:
            needed += [value, Affine({}, extent - 1).plus(value, -1)]
    return _guards(needed, ranges, known)


def _guards(needed: Iterable[Affine], ranges: Ranges, known: Iterable[Guard]) -> list[Guard]:
    holding = list(known)
    found: list[Guard] = []
    for slack in needed:
        if bounds(slack, ranges)[0] >= 0:
            continue
        if any(bounds(slack.plus(other.slack, -1), ranges)[0] >= 0 for other in holding):
            continue
        guard = Guard(slack, _loop_vars(slack))
        found.append(guard)
        holding.append(guard)
    return found


def _loop_vars(value: Affine) -> frozenset[LoopVar]:
    scalars = post_order_of(value.terms, operands)
    return frozenset(scalar for scalar in scalars if isinstance(scalar, LoopVar))
