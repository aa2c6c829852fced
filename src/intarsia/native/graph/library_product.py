"""Matrix products that a library computes inside a region (seed collage_rfc, appendix B).

A product becomes a kernel of its own, which calls the library where our kernels have loops. It reads and
writes the same memory as they do, so that nothing is copied at its borders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from intarsia.support.errors import UsageError

SHAPE_PATTERN: Final = r"\d+x\d+x\d+(x\d+)?"
"""Regular expression of a product's shape: rows, depth and columns, with a batch before them."""


@dataclass(frozen=True, slots=True, order=True)
class ProductShape:
    """Extents of a product of two matrices, or of a batch of pairs.

    Attributes:
        batch: Number of pairs of matrices.
        rows: Rows of the left matrix and of the result.
        depth: Columns of the left matrix, and rows of the right one.
        columns: Columns of the right matrix and of the result.
    """

    batch: int
    rows: int
    depth: int
    columns: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the shape of a text such as "128x768x3072" or "12x128x64x128".

        Raises:
            UsageError: It is no such text.
        """
        if not re.fullmatch(SHAPE_PATTERN, text):
            raise UsageError(
                f"{text!r} is no shape of a matrix product", help='write rows, depth, columns: "128x768x3072"'
            )
        extents = [int(extent) for extent in text.split("x")]
        return cls(*extents) if len(extents) == 4 else cls(1, *extents)

    @property
    def multiply_adds(self) -> int:
        """Number of multiplications."""
        return self.batch * self.rows * self.depth * self.columns

    def __str__(self) -> str:
        """E.g. "128x768x3072"; the batch stands first if there is one."""
        extents = (self.rows, self.depth, self.columns)
        return "x".join(map(str, extents if self.batch == 1 else (self.batch, *extents)))


@dataclass(frozen=True, slots=True)
class LibraryProduct:
    """A call of a library's matrix product.

    Attributes:
        library: Name of the library.
        shape: Extents.
        is_left_transposed: Whether the left matrix is stored by columns.
        is_right_transposed: Whether the right matrix is stored by columns.
        has_bias: Whether a row is added to each row of the result; it is the third argument.
        factor: Factor of the product.
    """

    library: str
    shape: ProductShape
    is_left_transposed: bool = False
    is_right_transposed: bool = False
    has_bias: bool = False
    factor: float = 1.0
