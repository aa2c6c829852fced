"""The registry of definitions: contributed operators of onnxruntime in terms of ONNX's own.

@definition("QuickGelu", inputs=(1, 1), alpha=1.702)
def quick_gelu(node: ContribNode) -> Results:
    x = node.input(0)
    return [node.op("Mul", x, node.op("Sigmoid", node.op("Mul", x, node.scalar(node.number("alpha"), x))))]

A definition computes what onnxruntime's kernel computes, up to rounding. It raises `NoDefinitionError` for
forms that ONNX's operators cannot express; the node then stays an opaque operator (`op.opaque`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from intarsia.frontend.onnx.contrib.contrib_node import ContribNode, NoDefinitionError
from intarsia.ir import Expr

__all__ = [
    "MICROSOFT",
    "REQUIRED",
    "ContribNode",
    "Definition",
    "NoDefinitionError",
    "Results",
    "defined_operators",
    "definition",
    "definition_of",
    "has_definition",
]

MICROSOFT: Final = "com.microsoft"

REQUIRED: Final = object()
"""Stands for the default of an attribute that has none."""

Results: TypeAlias = Sequence[Expr]
Rule: TypeAlias = Callable[[ContribNode], Results]


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a contributed operator by ONNX's operators.

    Attributes:
        rule: Function from a node to an expression for each of its outputs, up to the last one in use.
        inputs: The lowest and the highest number of inputs.
        attributes: Names of the attributes with their defaults; None where absence means something else.
    """

    rule: Rule
    inputs: tuple[int, int]
    attributes: Mapping[str, Any]


_DEFINITIONS: dict[tuple[str, str], Definition] = {}


def definition(
    *names: str, inputs: tuple[int, int], domain: str = MICROSOFT, **attributes: Any
) -> Callable[[Rule], Rule]:
    """Register a function as the definition of operators.

    Args:
        names: Operator types.
        inputs: The lowest and the highest number of inputs.
        domain: Domain of the operators.
        attributes: Their attributes with defaults.
    """

    def register(rule: Rule) -> Rule:
        for name in names:
            _DEFINITIONS[domain, name] = Definition(rule, inputs, MappingProxyType(attributes))
        return rule

    return register


def definition_of(domain: str, name: str) -> Definition | None:
    """The definition of an operator; None if it has none."""
    return _DEFINITIONS.get((domain, name))


def has_definition(domain: str, name: str) -> bool:
    """Whether an operator has a definition, at least for some forms of it."""
    return (domain, name) in _DEFINITIONS


def defined_operators(domain: str = MICROSOFT) -> tuple[str, ...]:
    """The names of the operators of a domain that have definitions."""
    return tuple(sorted(name for known, name in _DEFINITIONS if known == domain))
