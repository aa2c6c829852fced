"""Operators of the domain "intarsia" for results whose number of rows is known only at run time.

counted_indices(x)      the rows of NonZero: the indices of an element that is not 0, in row-major order
counted_boxes(boxes, scores, limit, iou_threshold, score_threshold, most=, filtered=, center_point_box=)
                        the rows of NonMaxSuppression: batch, class and box; `most` boxes a class at most.
                        Without `filtered` every score is high enough

Both return a vector of int64: the number of rows first, then the rows, then undefined elements up to the
largest number of rows that there can be.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Attrs, DType, TensorType, Type
from intarsia.support.errors import InvalidModelError

COUNTED_INDICES: Final = "counted_indices"
COUNTED_BOXES: Final = "counted_boxes"
COUNTED_BOXES_ARGUMENTS: Final = 5
COUNTED_BOXES_ATTRIBUTES: Final = ("center_point_box", "filtered", "most")
BOX_WIDTH: Final = 3
"""Numbers in a row of counted_boxes."""

Array = npt.NDArray[Any]


def counted_indices_type(args: tuple[Type | None, ...], _: Attrs) -> Type | None:
    """The type of a vector that has room for the indices of every element.

    Raises:
        InvalidModelError: x has no static shape, or no dimension.
    """
    x = args[0]
    if not isinstance(x, TensorType) or not x.is_static or not x.static_shape:
        raise InvalidModelError(f"operator 'intarsia::counted_indices' needs a static shape, found {x}")
    return TensorType((1 + math.prod(x.static_shape) * len(x.static_shape),), DType.INT64)


def counted_boxes_type(args: tuple[Type | None, ...], attrs: Attrs) -> Type | None:
    """The type of a vector that has room for `most` boxes of every class.

    Raises:
        InvalidModelError: The scores have no static shape of three dimensions.
    """
    scores, most = args[1], attrs["most"]
    if not isinstance(scores, TensorType) or not scores.is_static or len(scores.static_shape) != BOX_WIDTH:
        raise InvalidModelError(f"operator 'intarsia::counted_boxes' needs a static shape, found {scores}")
    assert isinstance(most, int)
    batches, classes, _ = scores.static_shape
    return TensorType((1 + batches * classes * most * BOX_WIDTH,), DType.INT64)


def rows_of(counted: Array, width: int) -> Array:
    """The rows of a counted vector, of shape (rows, width); a view."""
    count = int(counted[0])
    return counted[1 : 1 + count * width].reshape(count, width)


def counted(rows: Array, size: int) -> Array:
    """A counted vector of a size, with zeros behind the rows."""
    result = np.zeros(size, np.int64)
    result[0] = len(rows)
    result[1 : 1 + rows.size] = rows.reshape(-1)
    return result
