"""A node of a contributed operator, expressed by ONNX's operators where it has a definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from intarsia.frontend.onnx.contrib.definition import (
    REQUIRED,
    ContribNode,
    Definition,
    NoDefinitionError,
    Results,
    definition_of,
)
from intarsia.ir import Expr, Span
from intarsia.support.errors import InvalidModelError, UnsupportedModelError

if TYPE_CHECKING:
    from onnx import NodeProto


def expand(
    node: NodeProto, args: Sequence[Expr], attrs: Mapping[str, Any], span: Span, *, is_declared: bool
) -> Results | None:
    """Return an expression for each output of a node, up to the last one that is used.

    Args:
        node: The node.
        args: Its inputs; an empty tuple stands for an absent one.
        attrs: Its attributes.
        span: Span of the ONNX node.
        is_declared: Whether it can be an opaque operator instead.

    Returns:
        None if the operator has no definition.

    Raises:
        NoDefinitionError: It has none for this form, and can be an opaque operator instead.
        InvalidModelError: Wrong attributes, number of inputs, or types.
        UnsupportedModelError: It has no definition for this form, and cannot be an opaque operator.
    """
    entry = definition_of(node.domain, node.op_type)
    if entry is None:
        return None
    used = [bool(name) for name in node.output]
    while len(used) > 1 and not used[-1]:
        used.pop()
    _check_inputs(node.op_type, entry, len(args))
    attributes = _with_defaults(node.op_type, entry, attrs)
    try:
        return entry.rule(ContribNode(node.op_type, tuple(args), attributes, tuple(used), span))
    except NoDefinitionError as reason:
        if is_declared:
            raise
        raise UnsupportedModelError(
            f"operator {node.op_type!r} of the domain {node.domain!r} cannot be expressed by ONNX's "
            f"operators here: {reason}",
            help="install onnxruntime, which then runs it: pip install 'intarsia[onnxruntime]'",
        ) from None


def _check_inputs(name: str, entry: Definition, count: int) -> None:
    low, high = entry.inputs
    if not low <= count <= high:
        expected = str(low) if low == high else f"{low} to {high}"
        raise InvalidModelError(f"operator {name!r} has {count} inputs, expected {expected}")


def _with_defaults(name: str, entry: Definition, attrs: Mapping[str, Any]) -> dict[str, Any]:
    unknown = next((item for item in attrs if item not in entry.attributes), None)
    if unknown is not None:
        listed = ", ".join(sorted(entry.attributes)) or "none"
        raise InvalidModelError(
            f"operator {name!r} has no attribute {unknown!r}", help=f"its attributes: {listed}"
        )
    merged = {**entry.attributes, **attrs}
    missing = next((item for item, value in merged.items() if value is REQUIRED), None)
    if missing is not None:
        raise InvalidModelError(f"operator {name!r} lacks its attribute {missing!r}, which is required")
    for item, value in attrs.items():
        _check_kind(name, item, value, entry.attributes[item])
    return merged


def _check_kind(name: str, item: str, value: Any, default: Any) -> None:
    """An attribute must be of the kind of its default; a number may be written as an integer."""
    kinds = (int, float) if isinstance(default, float) else (type(default),)
    if default is not None and default is not REQUIRED and not isinstance(value, kinds):
        raise InvalidModelError(
            f"operator {name!r} has {item}={value!r}, expected a value such as {default!r}"
        )
