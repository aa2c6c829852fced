"""Values of a stage's axes as expressions over its present loops."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Literal, LoopVar, Scalar
from intarsia.native.loop_state.relation import FuseRelation, SplitRelation
from intarsia.native.loop_state.stage import Stage


@dataclass(frozen=True, slots=True)
class AxisValues:
    """Values of the loops of a stage.

    Attributes:
        values: An int64 scalar for each past and present loop, by name.
        conditions: Pairs of a loop's name and the condition under which an iteration is one of that loop;
            there is one for each split whose parts cover more than the extent.
    """

    values: Mapping[str, Scalar]
    conditions: tuple[tuple[str, Scalar], ...]

    def conditions_on(self, names: Collection[str]) -> tuple[Scalar, ...]:
        """Return the conditions on the named loops."""
        return tuple(condition for name, condition in self.conditions if name in names)


def axis_values(stage: Stage, names: Mapping[str, str]) -> AxisValues:
    """Compute the values of all past loops, over the present loops.

    Args:
        stage: Stage whose split lengths and extents are all known.
        names: Names of loop variables that differ from those of the loops.
    """
    values: dict[str, Scalar] = {loop.name: LoopVar(names.get(loop.name, loop.name)) for loop in stage.iters}
    conditions: list[tuple[str, Scalar]] = []
    for relation in reversed(stage.relations):
        match relation:
            case SplitRelation():
                _split_value(relation, values, conditions)
            case FuseRelation():
                _fused_values(relation, values)
    return AxisValues(values, tuple(conditions))


def _split_value(
    relation: SplitRelation, values: dict[str, Scalar], conditions: list[tuple[str, Scalar]]
) -> None:
    if relation.extent is None:
        return
    extent, sizes = relation.extent, piece_sizes(relation.extent, relation.lengths, relation.inner_to_outer)
    value = values[relation.parts[-1]]
    for i in range(len(relation.parts) - 2, -1, -1):
        value = _plus(_times(values[relation.parts[i]], sizes[i]), value)
        parent_extent = sizes[i - 1] if i else extent
        covered = (relation.lengths[i] or 1) * sizes[i]
        # A part that does not divide its parent runs over its end: the last iterations must be masked.
        if not relation.inner_to_outer and covered > parent_extent:
            conditions.append((relation.parent, _below(value, parent_extent)))
    if relation.inner_to_outer and -(-extent // sizes[0]) * sizes[0] > extent:
        conditions.append((relation.parent, _below(value, extent)))
    values[relation.parent] = value


def piece_sizes(extent: int, lengths: tuple[int | None, ...], inner_to_outer: bool) -> tuple[int, ...]:
    """Return the stride of each part of a split loop but the innermost, whose stride is 1."""
    chosen = [length for length in lengths if length is not None]
    assert len(chosen) == len(lengths), "lengths are chosen"
    sizes: list[int] = []
    if inner_to_outer:
        size = 1
        for length in reversed(chosen):
            size *= length
            sizes.insert(0, size)
        return tuple(sizes)
    for length in chosen:
        extent = max(1, -(-extent // length))
        sizes.append(extent)
    return tuple(sizes)


def _fused_values(relation: FuseRelation, values: dict[str, Scalar]) -> None:
    rest = values[relation.fused]
    for i in range(len(relation.parts) - 1, 0, -1):
        extent = relation.extents[i]
        if extent is None:
            return
        values[relation.parts[i]] = _divided(ArithOp.FLOOR_MOD, rest, extent)
        rest = _divided(ArithOp.FLOOR_DIV, rest, extent)
    if relation.parts:
        values[relation.parts[0]] = rest


def _number(value: int) -> Literal:
    return Literal(value, DType.INT64)


def _times(value: Scalar, factor: int) -> Scalar:
    return value if factor == 1 else Arith(ArithOp.MUL, (value, _number(factor)))


def _plus(lhs: Scalar, rhs: Scalar) -> Scalar:
    return Arith(ArithOp.ADD, (lhs, rhs))


def _divided(op: ArithOp, value: Scalar, by: int) -> Scalar:
    if by == 1:
        return _number(0) if op is ArithOp.FLOOR_MOD else value
    return Arith(op, (value, _number(max(by, 1))))


def _below(value: Scalar, limit: int) -> Scalar:
    return Arith(ArithOp.LT, (value, _number(limit)))
