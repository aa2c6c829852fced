"""Attribute values that make onnx's inference crash or run forever, found by damaging models at random."""

from __future__ import annotations

import re
from collections.abc import Mapping

from intarsia.support.errors import InvalidModelError

_FARTHEST_AXIS = 2**16
"""No tensor has as many dimensions; sums of larger numbers overflow in onnx (LayerNormalization)."""

_EQUATION = re.compile(r"[A-Za-z ,.]*(->[A-Za-z .]*)?\Z")
"""Einsum: letters, commas and dots, at most one arrow. onnx never ends on some others."""


def check_attribute_values(operator: str, attrs: Mapping[str, object]) -> None:
    """Refuse attribute values that onnx's inference cannot handle; other wrong values are left to it.

    Raises:
        InvalidModelError: A position that no tensor has, or an equation that is none.
    """
    for name, lowest in (("axis", -_FARTHEST_AXIS), ("batch_dims", 0)):
        value = attrs.get(name, 0)
        if isinstance(value, int) and not lowest <= value <= _FARTHEST_AXIS:
            raise InvalidModelError(f"operator {operator!r} has {name}={value}, which no tensor has")
    equation = attrs.get("equation", "")
    if operator == "Einsum" and not (isinstance(equation, str) and _EQUATION.match(equation)):
        raise InvalidModelError(
            f"operator 'Einsum' has the equation {equation!r}, expected one such as 'ij,jk->ik'"
        )
