"""Turning what a caller passes for a tensor into a NumPy array."""

from __future__ import annotations

import numpy as np

from intarsia.runtime.kernel import Array
from intarsia.support.errors import InputError


def as_array(subject: str, value: object, dtype: str) -> Array:
    """The array that a caller's value is, sharing its memory where possible.

    Args:
        subject: What it is passed for, such as `input "data"`.
        value: A NumPy array or scalar, or anything with `__dlpack__` in the memory of the CPU.
        dtype: The element type expected, for the help line.

    Raises:
        InputError: It is no array, or its owner does not share it.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if not hasattr(value, "__dlpack__"):
        raise InputError(
            f"{subject} is of type {type(value).__name__}, "
            "expected a NumPy array or an object with __dlpack__",
            help=f'convert it: numpy.asarray(value, dtype="{dtype}")' if _is_plain(value) else "",
        )
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{subject} is of type {type(value).__name__}, which cannot be shared with NumPy: {error}",
            help="pass a tensor in CPU memory that needs no gradient, of an element type that NumPy has",
        ) from error


def _is_plain(value: object) -> bool:
    return isinstance(value, (int, float, complex, str, bool, list, tuple))
