"""The placement of a stage: the loops around it, its tile, and its own loops."""

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
from intarsia.native.lowering.read_box import Interval
from intarsia.native.te import ComputeOp, ExternOp, IterKind
from intarsia.native.tir.affine import Affine, Ranges, as_scalar, bounds
from intarsia.support.post_order import post_order_of

Path = tuple[tuple[int, int], ...]
"""Loops, outermost first, each as the number of its stage and the loop's position in it."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of a stage; one of extent 1 is left out of the loop function, and its value is 0."""

    name: str
    var: LoopVar
    extent: int
    kind: IterKind
    annotation: IteratorAnnotation

    @property
    def value(self) -> Affine:
        """Its counter as an affine form; 0 for extent 1."""
        return Affine() if self.extent == 1 else Affine({self.var: 1})


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which an element is computed: `slack` is not negative.

    Attributes:
        slack: Affine form that is not negative where the condition holds.
        loop_vars: Loop variables that the condition depends on.
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
    """The loops and guards around a stage.

    Attributes:
        path: Loops around the stage.
        ranges: Ranges of their variables.
        guards: Conditions that hold there.
    """

    path: Path
    ranges: Ranges
    guards: tuple[Guard, ...]


@dataclass(frozen=True, slots=True)
class StagePlacement:
    """The placement of a stage that is not inlined.

    Attributes:
        stage: The stage.
        around: Loops and guards around the stage.
        loops: Loops of the stage, outermost first.
        ranges: Ranges of the variables of its loops and of those around.
        buffers: Buffers of its results: its tensors, or tiles of them.
        begins: Index at which the tile begins, for each dimension; 0 of a whole tensor.
        indices: Indices of the element in the buffers.
        axes: Values of the axes, by the names of their variables.
        guards: Conditions for an element to be inside the tensors and the tile.
        extents: Extent of each loop, including loops that were split or fused since.
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

    def surroundings_inside(self, stage_id: int, loop: int) -> Surroundings:
        """Return the surroundings of a stage that is attached inside one of the loops."""
        bound = {each.var for each in self.loops[loop + 1 :]}
        ranges = {var: bounds_of_var for var, bounds_of_var in self.ranges.items() if var not in bound}
        path = (*self.around.path, *((stage_id, position) for position in range(loop + 1)))
        holding = (guard for guard in self.guards if not guard.loop_vars & bound)
        return Surroundings(path, ranges, (*self.around.guards, *holding))


OUTSIDE = Surroundings((), {}, ())


def place_stage(stage: Stage, around: Surroundings, tile: Sequence[Interval] | None) -> StagePlacement:
    """Return the placement of a stage.

    Args:
        stage: The stage, not inlined.
        around: Loops and guards around the stage.
        tile: Part of its tensors that is computed there; None for all of them.

    Raises:
        UsageError: A split length is not chosen.
    """
    op = stage.op
    if isinstance(op, ExternOp) or not isinstance(op, ComputeOp):
        return StagePlacement(stage, around, (), around.ranges, op.buffers, (), (), {}, (), {})
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
    guards = split_guards(checks, ranges, around.guards)
    guards += tile_guards(
        begins, [axes[axis.name] for axis in op.axes], op.shape, ranges, (*around.guards, *guards)
    )
    whole = all(
        not part.begin.terms and not part.begin.constant and part.extent == extent
        for part, extent in zip(tile, op.shape, strict=True)
    )
    buffers = op.buffers if whole else tuple(Buffer(b.name, tuple(counts), b.dtype) for b in op.buffers)
    return StagePlacement(
        *(stage, around, loops, ranges, buffers, begins, tuple(indices[:rank]), axes, tuple(guards), extents)
    )


def _loops(stage: Stage, extents: dict[str, int], taken: Collection[str]) -> tuple[Loop, ...]:
    used = set(taken)
    loops = []
    for loop in stage.iters:
        name = plain_name(loop.name, used)
        used.add(name)
        loops.append(Loop(loop.name, LoopVar(name), extents[loop.name], loop.kind, loop.annotation))
    return tuple(loops)


def split_guards(checks: Iterable[Check], ranges: Ranges, known_guards: Iterable[Guard]) -> list[Guard]:
    """Return the guards of splits that do not divide evenly, without those that are implied."""
    needed = (Affine({}, check.extent - 1).plus(check.value, -1) for check in checks)
    return _guards_not_implied(needed, ranges, known_guards)


def tile_guards(
    begins: Sequence[Affine],
    axes: Sequence[Affine],
    shape: Sequence[int],
    ranges: Ranges,
    known_guards: Iterable[Guard],
) -> list[Guard]:
    """Return the guards that keep a moving tile inside its tensor, without those that are implied."""
    needed = []
    for begin, value, extent in zip(begins, axes, shape, strict=True):
        if begin.terms:
            needed += [value, Affine({}, extent - 1).plus(value, -1)]  # 0 <= value <= extent - 1
    return _guards_not_implied(needed, ranges, known_guards)


def _guards_not_implied(
    needed: Iterable[Affine], ranges: Ranges, known_guards: Iterable[Guard]
) -> list[Guard]:
    holding = list(known_guards)
    guards: list[Guard] = []
    for slack in needed:
        if bounds(slack, ranges)[0] >= 0:
            continue
        # Never below a slack that is not negative: the other guard implies this one.
        if any(bounds(slack.plus(other.slack, -1), ranges)[0] >= 0 for other in holding):
            continue
        guard = Guard(slack, _loop_vars(slack))
        guards.append(guard)
        holding.append(guard)
    return guards


def _loop_vars(value: Affine) -> frozenset[LoopVar]:
    scalars = post_order_of(value.terms, operands)
    return frozenset(scalar for scalar in scalars if isinstance(scalar, LoopVar))
