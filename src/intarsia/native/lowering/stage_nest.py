"""The loop nests of stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intarsia.ir import DType
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    For,
    ForKind,
    IfThenElse,
    LoopVar,
    Scalar,
    Statement,
)
from intarsia.native.dag.loop_name import loop_name as axis_name
from intarsia.native.loop_state.iterator import IteratorAnnotation
from intarsia.native.loop_state.relation import FuseRelation
from intarsia.native.loop_state.state import LoopState
from intarsia.native.lowering.element_forms import Tile
from intarsia.native.lowering.element_store import ElementStores, block
from intarsia.native.lowering.extern_body import splice
from intarsia.native.lowering.loop_values import loop_values
from intarsia.native.lowering.names import loop_name
from intarsia.native.lowering.placement import Guard, Loop, StagePlacement, split_guards, tile_guards
from intarsia.native.lowering.placements import Placements
from intarsia.native.te import ComputeOp, ExternOp, IterKind
from intarsia.native.tir.affine import Affine, as_scalar
from intarsia.support.free_names import NameSupply

_KINDS: Mapping[IteratorAnnotation, ForKind] = {
    IteratorAnnotation.UNROLL: ForKind.UNROLLED,
    IteratorAnnotation.VECTORIZE: ForKind.VECTORIZED,
    IteratorAnnotation.PARALLEL: ForKind.PARALLEL,
    IteratorAnnotation.BLOCK_X: ForKind.BLOCK,
    IteratorAnnotation.THREAD_X: ForKind.THREAD,
    IteratorAnnotation.VTHREAD: ForKind.VIRTUAL,
}
_NOTHING = Block(())
_OF_ONE_THREAD = frozenset(
    {ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.BLOCK, ForKind.THREAD, ForKind.VIRTUAL}
)
"""Kinds of loops inside of which no loop is parallel."""


class StageNests:
    """Builds the loop nests of a state's stages."""

    def __init__(self, state: LoopState, placements: Placements, names: NameSupply) -> None:
        self._state = state
        self._placements = placements
        self._names = names
        self._stores = ElementStores(names)
        self._tiles: dict[str, Tile] = {}
        for placement in placements.by_stage.values():
            if placement.around.path:
                tiles = ((buffer.name, (buffer, placement.begins)) for buffer in placement.buffers)
                self._tiles.update(tiles)

    def statement(self, stage_id: int, may_be_parallel: bool = True) -> Statement:
        """Build the loop nest of a stage, with all stages that are attached inside its loops."""
        placement = self._placements.by_stage[stage_id]
        op = placement.stage.op
        if placement.stage.is_skipped:
            return _NOTHING
        if isinstance(op, ExternOp):
            return splice(op, self._names, self._stores, self._placements.inlining.load)
        assert isinstance(op, ComputeOp), "placeholders are not computed"
        if any(extent == 0 for buffer in placement.buffers for extent in buffer.shape):
            return _NOTHING
        return self._nest(stage_id, placement, op, may_be_parallel)

    def _nest(
        self, stage_id: int, placement: StagePlacement, op: ComputeOp, may_be_parallel: bool
    ) -> Statement:
        kinds = _kinds(placement.loops, may_be_parallel)
        first = _first_reduction(placement.loops) if op.combiner is not None else -1
        body = self._element(stage_id, placement, op)
        parallel = _may_be_parallel_inside(placement.loops, kinds)
        if first == len(placement.loops):
            body = block((self._initialisation(placement, op, kinds, first), body))
        guards = _by_position(placement.guards, placement.loops)
        for position in range(len(placement.loops) - 1, -1, -1):
            loop = placement.loops[position]
            for inner in reversed(self._state.attach_map.attached.get((stage_id, position), ())):
                body = self._with_tile(inner, body, may_be_parallel and parallel[position])
            body = _loop(loop, kinds[position], guarded(guards.get(position, ()), body))
            if position == first:
                body = block((self._initialisation(placement, op, kinds, first), body))
        return guarded(guards.get(-1, ()), body)

    def _with_tile(self, stage_id: int, body: Statement, may_be_parallel: bool) -> Statement:
        placement = self._placements.by_stage.get(stage_id)
        if placement is None:
            return body
        body = block((self.statement(stage_id, may_be_parallel), body))
        for buffer in reversed(placement.buffers):
            body = Allocate(buffer, body)
        return body

    def _element(self, stage_id: int, placement: StagePlacement, op: ComputeOp) -> Statement:
        values = self._placements.elements[stage_id].scalars(self._tiles)
        indices = _scalars(placement.indices)
        if op.combiner is not None:
            return self._stores.update(placement.buffers, indices, op.combiner, values)
        pairs = zip(placement.buffers, values, strict=True)
        return block([self._stores.store(buffer, indices, value) for buffer, value in pairs])

    def _initialisation(
        self, placement: StagePlacement, op: ComputeOp, kinds: Sequence[ForKind], first: int
    ) -> Statement:
        """Build stores of the neutral element to all elements that the loops from `first` on reduce."""
        assert op.combiner is not None
        inner = placement.loops[first:]
        if any(loop.kind is IterKind.MIXED for loop in inner):
            return self._initialisation_of_parts(placement, op, inner)
        body = self._stores.initialise(placement.buffers, _scalars(placement.indices), op.combiner)
        # The element does not depend on reduction loops: the initialisation leaves out guards that do.
        reduced = {loop.var for loop in inner if loop.kind is not IterKind.SPATIAL}
        spatial = [guard for guard in placement.guards if not guard.loop_vars & reduced]
        guards = _by_position(spatial, placement.loops)
        for position in range(len(placement.loops) - 1, first - 1, -1):
            loop = placement.loops[position]
            if loop.kind is IterKind.SPATIAL:
                body = _loop(loop, kinds[position], guarded(guards.get(position, ()), body))
        return body

    def _initialisation_of_parts(
        self, placement: StagePlacement, op: ComputeOp, inner: Sequence[Loop]
    ) -> Statement:
        """Build the same where spatial loops were fused with reductions: over the loops before the fusion."""
        assert op.combiner is not None
        loops = [*(loop for loop in inner if loop.kind is IterKind.SPATIAL), *_spatial_parts(placement)]
        around = {loop.name: loop.value for loop in placement.loops if loop not in inner}
        given = {**around, **{loop.name: loop.value for loop in loops}}
        ranges = {**placement.ranges, **{loop.var: (0, max(0, loop.extent - 1)) for loop in loops}}
        values, checks = loop_values(placement.stage.relations, placement.extents, given, ranges)
        indices = [values[name] for name in [axis_name(axis.name) for axis in op.axes]]
        guards = split_guards(checks, ranges, placement.around.guards)
        axes = [begin.plus(index) for index, begin in zip(indices, placement.begins, strict=True)]
        guards += tile_guards(placement.begins, axes, op.shape, ranges, (*placement.around.guards, *guards))
        body = self._stores.initialise(placement.buffers, _scalars(indices), op.combiner)
        body = guarded(guards, body)
        for loop in reversed(loops):
            body = _loop(loop, ForKind.SERIAL, body)
        return body


def guarded(guards: Sequence[Guard], body: Statement) -> Statement:
    """Return a statement guarded by conditions."""
    if not guards or body == _NOTHING:
        return body
    cond = guards[0].cond
    for guard in guards[1:]:
        cond = Arith(ArithOp.AND, (cond, guard.cond))
    return IfThenElse(cond, body)


def _loop(loop: Loop, kind: ForKind, body: Statement) -> Statement:
    if loop.extent == 0 or body == _NOTHING:
        return _NOTHING
    return body if loop.extent == 1 else For(loop.var, loop.extent, body, kind)


def _kinds(loops: Sequence[Loop], may_be_parallel: bool) -> list[ForKind]:
    """Return the kind of each loop: serial where the order matters, or where threads are busy already."""
    kinds = []
    for loop in loops:
        kind = _KINDS.get(loop.annotation, ForKind.SERIAL)
        if loop.kind is not IterKind.SPATIAL and kind is not ForKind.UNROLLED:
            kind = ForKind.SERIAL
        if kind is ForKind.PARALLEL and not may_be_parallel:
            kind = ForKind.SERIAL
        may_be_parallel = may_be_parallel and (kind not in _OF_ONE_THREAD or loop.extent == 1)
        kinds.append(kind)
    return kinds


def _may_be_parallel_inside(loops: Sequence[Loop], kinds: Sequence[ForKind]) -> list[bool]:
    taken = [kind in _OF_ONE_THREAD and loop.extent > 1 for loop, kind in zip(loops, kinds, strict=True)]
    return [not any(taken[: position + 1]) for position in range(len(taken))]


def _first_reduction(loops: Sequence[Loop]) -> int:
    places = (position for position, loop in enumerate(loops) if loop.kind is not IterKind.SPATIAL)
    return next(places, len(loops))


def _by_position(guards: Sequence[Guard], loops: Sequence[Loop]) -> dict[int, list[Guard]]:
    """Return guards by the innermost loop that they depend on; -1 for none of these loops."""
    places = {loop.var: place for place, loop in enumerate(loops)}
    guards_by_loop: dict[int, list[Guard]] = {}
    for guard in guards:
        position = max((places.get(var, -1) for var in guard.loop_vars), default=-1)
        guards_by_loop.setdefault(position, []).append(guard)
    return guards_by_loop


def _spatial_parts(placement: StagePlacement) -> list[Loop]:
    """Return the spatial loops among those that were fused into mixed loops."""
    kinds = _kinds_by_name(placement)
    taken = {var.name for var in placement.ranges}
    loops = []
    for relation in placement.stage.relations:
        if not isinstance(relation, FuseRelation) or kinds[relation.fused] is not IterKind.MIXED:
            continue
        for part in relation.parts:
            if kinds[part] is IterKind.SPATIAL:
                name = loop_name(part, taken)
                taken.add(name)
                extent = placement.extents[part]
                loops.append(Loop(part, LoopVar(name), extent, IterKind.SPATIAL, IteratorAnnotation.NONE))
    return loops


def _kinds_by_name(placement: StagePlacement) -> dict[str, IterKind]:
    op = placement.stage.op
    assert isinstance(op, ComputeOp), "others have no loops"
    kinds = {axis_name(axis.name): axis.kind for axis in (*op.axes, *op.reduce_axes)}
    for relation in placement.stage.relations:
        if isinstance(relation, FuseRelation):
            # A fusion of spatial with reduction loops is neither: its iterations must run in order.
            fused = {kinds[part] for part in relation.parts}
            kinds[relation.fused] = IterKind.MIXED if len(fused) > 1 else next(iter(fused), IterKind.SPATIAL)
        else:
            kinds.update(dict.fromkeys(relation.parts, kinds[relation.parent]))
    return kinds


def _scalars(values: Sequence[Affine]) -> tuple[Scalar, ...]:
    return tuple(as_scalar(value, DType.INT64) for value in values)
