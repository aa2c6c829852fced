"""The loops of one operation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from intarsia.native.dag.loop_name import loop_name
from intarsia.native.loop_state.iterator import Iterator, IteratorAnnotation, Range
from intarsia.native.loop_state.relation import Relation
from intarsia.native.te.iter_var import IterVar
from intarsia.native.te.tensor import ComputeOp, Operation, PlaceholderOp


class StageKind(IntEnum):
    """Kind of a stage; the numbers are TVM's."""

    PLACEHOLDER = 0
    COMPUTE = 1


class ComputeAt(IntEnum):
    """Position of a stage's computation; the numbers are TVM's."""

    ROOT = 0
    INLINED = 1
    ITER = 2


@dataclass(frozen=True, slots=True)
class Stage:
    """The loops of one operation, and the position of its computation.

    Attributes:
        op: The operation.
        iters: Loops of the stage, outermost first; () for a placeholder and for an ExternOp.
        compute_at: Position of the computation; the attach map has the loop.
        relations: Relations from the operation's axes to the loops, in the order of the steps.
        auto_unroll_max_step: Maximum number of unrolled steps; 0 without a hint.
        storage_offset: Offset that the storage alignment adds to a stride, in elements.
        is_skipped: Whether the computation is left out, which is for timing only.
    """

    op: Operation
    iters: tuple[Iterator, ...]
    compute_at: ComputeAt = ComputeAt.ROOT
    relations: tuple[Relation, ...] = ()
    auto_unroll_max_step: int = 0
    storage_offset: int = 0
    is_skipped: bool = False

    @classmethod
    def of(cls, op: Operation) -> Stage:
        """Return the stage with its declared loops: spatial axes, then reduction axes."""
        return cls(op, tuple(map(_loop, axes_of(op))))

    def with_fields(self, **changes: Any) -> Stage:
        """Return the stage with changed fields; `dataclasses.replace` takes three times as long per step."""
        get = changes.get
        return Stage(
            *(get("op", self.op), get("iters", self.iters), get("compute_at", self.compute_at)),
            *(get("relations", self.relations), get("auto_unroll_max_step", self.auto_unroll_max_step)),
            *(get("storage_offset", self.storage_offset), get("is_skipped", self.is_skipped)),
        )

    @property
    def kind(self) -> StageKind:
        """Kind of the stage: computed or placeholder."""
        return StageKind.PLACEHOLDER if isinstance(self.op, PlaceholderOp) else StageKind.COMPUTE

    @property
    def has_declared_loops(self) -> bool:
        """Whether no step has changed the loops, attached or not."""
        names = [loop_name(axis.name) for axis in axes_of(self.op)]
        is_plain = all(loop.annotation is IteratorAnnotation.NONE for loop in self.iters)
        return is_plain and not self.relations and [loop.name for loop in self.iters] == names


def axes_of(op: Operation) -> tuple[IterVar, ...]:
    """Return the axes that become loops, outermost first."""
    return (*op.axes, *op.reduce_axes) if isinstance(op, ComputeOp) else ()


def _loop(axis: IterVar) -> Iterator:
    return Iterator(loop_name(axis.name), Range(0, axis.extent), axis.kind)
