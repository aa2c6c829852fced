"""Kinds of elements of arrays, for NumPy's element types and those of ml_dtypes."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

import numpy as np


class ElementKind(Enum):
    """The kind of an element type, which decides how elements are compared."""

    FLOAT = "float"
    COMPLEX = "complex"
    INTEGER = "integer"  # and bool
    TEXT = "text"
    OTHER = "other"


# ml_dtypes registers its types with NumPy under these names, but as kind "V" (void), so the name decides.
_KINDS = (
    (re.compile(r"b?float\d+(_\w+)?|longdouble"), ElementKind.FLOAT),
    (re.compile(r"complex(64|128)"), ElementKind.COMPLEX),
    (re.compile(r"u?int\d+|bool"), ElementKind.INTEGER),
    (re.compile(r"str\d*|bytes\d*|object|StringDType\d*"), ElementKind.TEXT),
)


def dtype_name(dtype: np.dtype[Any] | str) -> str:
    """Return the name of an element type, such as "float32" or "float8_e4m3fn"."""
    return dtype if isinstance(dtype, str) else dtype.name


def element_kind(dtype: np.dtype[Any] | str) -> ElementKind:
    """Return the kind of an element type or of its name."""
    name = dtype_name(dtype)
    return next((kind for pattern, kind in _KINDS if pattern.fullmatch(name)), ElementKind.OTHER)
