"""Groups of operators that onnxruntime runs as one, beside those that its predicate allows."""

from __future__ import annotations

from intarsia.op.operator_predicate import operator_predicate
from intarsia.op.pattern_table import PatternTable
from intarsia.toolchain.attention_pattern import attention


def patterns() -> PatternTable:
    """Return the pattern table. ONNX Runtime has a kernel of its own for it."""
    return (attention(operator_predicate("onnxruntime")),)
