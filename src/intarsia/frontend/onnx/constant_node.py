"""Constants of a program, and the value of a Constant node, whichever of its attributes holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from intarsia.frontend.onnx.external_data import WeightSource
from intarsia.ir import Constant, Span
from intarsia.support.errors import InvalidModelError, UnsupportedModelError

if TYPE_CHECKING:
    from onnx import NodeProto


def owned_constant(array: npt.NDArray[Any], span: Span | None) -> Constant:
    """Make an array read-only, and return it as a constant that owns it."""
    array.flags.writeable = False
    return Constant(array, span=span)


def constant_value(node: NodeProto, source: WeightSource) -> npt.NDArray[Any]:
    """The array of a Constant node; strings become an object array of str.

    Raises:
        InvalidModelError: Not exactly one attribute, or damaged data.
        UnsupportedModelError: An attribute that ONNX does not define.
    """
    if len(node.attribute) != 1:
        found = ", ".join(item.name for item in node.attribute) or "none"
        raise InvalidModelError(f"a Constant node needs one attribute that holds its value, found {found}")
    attribute = node.attribute[0]
    match attribute.name:
        case "value":
            return source.read(attribute.t)
        case "value_float":
            return np.array(attribute.f, np.float32)
        case "value_floats":
            return np.array(attribute.floats, np.float32)
        case "value_int":
            return np.array(attribute.i, np.int64)
        case "value_ints":
            return np.array(attribute.ints, np.int64)
        case "value_string":
            return np.array(_text(attribute.s), dtype=object)
        case "value_strings":
            return np.array([_text(item) for item in attribute.strings], dtype=object)
        case other:
            raise UnsupportedModelError(f"a Constant node with the attribute {other!r}")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidModelError(f"a Constant node holds {data[:20]!r}, which is no UTF-8 text") from None
