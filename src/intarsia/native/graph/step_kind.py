"""How the steps of a region can be put together."""

from __future__ import annotations

from enum import Enum

from intarsia.native.graph.straight_line import Step
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
    """What a step does with elements, as far as kernels are concerned."""

    ELEMENTWISE = "elementwise"
    """An element of each argument, perhaps stretched, makes an element of the result."""
    MOVE = "move"
    """Each element of the result is one of an argument, and each of the argument is used once at most."""
    INJECTIVE = "injective"
    """Each element of the result is one of an argument."""
    REDUCTION = "reduction"
    """Elements along axes are combined, each read once or a few times."""
    ANCHOR = "anchor"
    """Elements are read many times: convolution, matrix product, pooling, softmax, normalization."""
    OPAQUE = "opaque"
    """On its own: several results, or loops that no expression declares."""

    @property
    def has_loops(self) -> bool:
        """Whether it decides the loops of its kernel, so that a kernel has one of it at most."""
        return self in (StepKind.REDUCTION, StepKind.ANCHOR)


_KINDS = {
    OpPatternKind.ELEMWISE: StepKind.ELEMENTWISE,
    OpPatternKind.BROADCAST: StepKind.ELEMENTWISE,
    OpPatternKind.INJECTIVE: StepKind.INJECTIVE,
    OpPatternKind.COMM_REDUCE: StepKind.REDUCTION,
    OpPatternKind.OUT_ELEMWISE_FUSABLE: StepKind.ANCHOR,
}


def step_kind(step: Step) -> StepKind:
    """The kind of a step, by its operator."""
    if len(step.outputs) > 1:
        return StepKind.OPAQUE
    if not step.op.domain and step.op.name in _ROWS:
        return StepKind.ANCHOR
    if not step.op.domain and step.op.name in _MOVES_ONCE:
        return StepKind.MOVE
    return _KINDS.get(op_pattern(step.op), StepKind.OPAQUE)
