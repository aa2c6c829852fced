"""Operators of sequences and optionals: they store tensors and hand them out, and compute nothing."""

from __future__ import annotations

from typing import Final

from intarsia.ir import Call, Op, TensorType

STRUCTURE_OPERATORS: Final = frozenset(
    {
        "ConcatFromSequence",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
        "SequenceAt",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
        "SequenceInsert",
        "SequenceLength",
        "SplitToSequence",
    }
)
"""Of ONNX's default domain. SequenceMap is none of them: its body computes."""


def is_of_data_structure(call: Call) -> bool:
    """Whether a call only stores tensors in a sequence or optional, or takes them out of one.

    Identity does where its value is no tensor.
    """
    if not isinstance(call.op, Op) or call.op.domain:
        return False
    is_structure = call.checked_type is not None and not isinstance(call.checked_type, TensorType)
    return call.op.name in STRUCTURE_OPERATORS or (call.op.name == "Identity" and is_structure)
