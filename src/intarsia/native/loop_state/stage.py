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
    """What a stage is; the numbers are the field's."""

    PLACEHOLDER = 0
    COMPUTE = 1


class ComputeAt(IntEnum):
    """Where a stage is computed; the numbers are the field's."""

    ROOT = 0
    INLINED = 1
    ITER = 2


@dataclass(frozen=True, slots=True)
class Stage:
    """The loops of one operation, and where they stand.

    Attributes:
        op: The operation.
        iters: Its loops, outermost first; () of a placeholder, and of what is written by an own statement.
        compute_at: Where it is computed; inside which loop is in the attach map.
        relations: How the loops came from the operation's axes, in the order of the steps.
        auto_unroll_max_step: Up to how many steps are unrolled; 0 is no hint.
        storage_offset: What the storage alignment adds to a stride, in elements.
        is_skipped: Whether the region is left out, for timing only.
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
        """The loops as declared: spatial axes, then reduction axes."""
        return cls(op, tuple(map(_loop, axes_of(op))))

    def with_fields(self, **changes: Any) -> Stage:
        """With fields changed; `dataclasses.replace` takes three times as long, in each step of a history."""
        get = changes.get
        return Stage(
            *(get("op", self.op), get("iters", self.iters), get("compute_at", self.compute_at)),
            *(get("relations", self.relations), get("auto_unroll_max_step", self.auto_unroll_max_step)),
            *(get("storage_offset", self.storage_offset), get("is_skipped", self.is_skipped)),
        )

    @property
    def kind(self) -> StageKind:
        """Whether something is computed."""
        return StageKind.PLACEHOLDER if isinstance(self.op, PlaceholderOp) else StageKind.COMPUTE

    @property
    def has_declared_loops(self) -> bool:
        """Whether no step has changed the loops, wherever they stand."""
        names = [loop_name(axis.name) for axis in axes_of(self.op)]
        is_plain = all(loop.annotation is IteratorAnnotation.NONE for loop in self.iters)
        return is_plain and not self.relations and [loop.name for loop in self.iters] == names


def axes_of(op: Operation) -> tuple[IterVar, ...]:
    """The axes that become loops, outermost first."""
    return (*op.axes, *op.reduce_axes) if isinstance(op, ComputeOp) else ()


def _loop(axis: IterVar) -> Iterator:
    return Iterator(loop_name(axis.name), Range(0, axis.extent), axis.kind)
