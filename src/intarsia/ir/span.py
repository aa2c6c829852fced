"""Where an expression comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """The place in the user's model that an expression stands for.

    Attributes:
        source: File or object the model was read from.
        node: Name of the node there (for unnamed ONNX nodes: its first output).
        operator: Operator type of that node, or the empty string.
    """

    source: str
    node: str
    operator: str = ""
