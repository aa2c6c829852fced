"""Groups of operators that openvino runs as one, beside those that its predicate allows."""

from __future__ import annotations

from intarsia.op.operator_predicate import operator_predicate
from intarsia.op.pattern_table import PatternTable
from intarsia.toolchain.attention_pattern import attention


def patterns() -> PatternTable:
    """Return the pattern table. OpenVINO has a fused kernel for scaled dot products."""
    return (attention(operator_predicate("openvino")),)
