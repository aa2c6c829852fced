"""Operators of sequences and optionals: they store tensors and hand them out, and compute nothing."""

from __future__ import annotations

from intarsia.ir import Call, Op, TensorType
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import facts_of


def is_of_data_structure(call: Call) -> bool:
    """Whether a call only stores tensors in a sequence or optional, or takes them out of one.

    Identity does where its value is no tensor.
    """
    if not isinstance(call.op, Op) or call.op.domain:
        return False
    is_structure = call.checked_type is not None and not isinstance(call.checked_type, TensorType)
    return facts_of(call.op).has(OperatorTrait.STRUCTURE) or (call.op.name == "Identity" and is_structure)
