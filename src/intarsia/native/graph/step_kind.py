"""Kinds of steps, by which they are fused."""

from __future__ import annotations

from enum import Enum

from intarsia.native.graph.straight_line import KernelStep
from intarsia.op import OpPatternKind, op_pattern

_ROWS = frozenset(
    [
        "GroupNormalization",
        "InstanceNormalization",
        "LayerNormalization",
        "LogSoftmax",
        "LpNormalization",
        "MeanVarianceNormalization",
        "RMSNormalization",
        "Softmax",
    ]
)
_MOVES_ONCE = frozenset({"DepthToSpace", "Slice", "SpaceToDepth", "Transpose"})


class StepKind(Enum):
    """Access pattern of a step."""

    ELEMENTWISE = "elementwise"
    """An element of the result is computed from one element of each argument, perhaps broadcast."""
    MOVE = "move"
    """Each element of the result is one of an argument, whose elements are used once at most."""
    INJECTIVE = "injective"
    """Each element of the result is one of an argument."""
    REDUCTION = "reduction"
    """Elements along axes are combined, each read once or a few times."""
    ANCHOR = "anchor"
    """Elements are read many times: convolution, matrix product, pooling, softmax, normalization."""
    OPAQUE = "opaque"
    """The step is never fused: it has several results, or loops that no expression declares."""

    @property
    def has_loops(self) -> bool:
        """Whether the step determines the loops of its kernel, which has at most one such step."""
        return self in (StepKind.REDUCTION, StepKind.ANCHOR)


_KINDS = {
    OpPatternKind.ELEMWISE: StepKind.ELEMENTWISE,
    OpPatternKind.BROADCAST: StepKind.ELEMENTWISE,
    OpPatternKind.INJECTIVE: StepKind.INJECTIVE,
    OpPatternKind.COMM_REDUCE: StepKind.REDUCTION,
    OpPatternKind.OUT_ELEMWISE_FUSABLE: StepKind.ANCHOR,
}


def step_kind(step: KernelStep) -> StepKind:
    """Return the kind of a step, by its operator."""
    if len(step.outputs) > 1:
        return StepKind.OPAQUE
    if not step.op.domain and step.op.name in _ROWS:
        return StepKind.ANCHOR
    if not step.op.domain and step.op.name in _MOVES_ONCE:
        return StepKind.MOVE
    return _KINDS.get(op_pattern(step.op), StepKind.OPAQUE)
