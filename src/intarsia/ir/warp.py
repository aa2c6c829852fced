"""Numbers of NVIDIA GPUs that the loop language has in its statements of threads."""

from __future__ import annotations

from typing import Final

WARP: Final = 32
"""Number of threads that execute together: those whose numbers in their block have one quotient by it."""
COPY_SIZES: Final = (4, 8, 16)
"""Sizes of an asynchronous copy in bytes."""
MMA_ROWS: Final = 16
"""Number of rows of sums of a product of a warp."""
MMA_COLUMNS: Final = 8
"""Number of columns of sums of a product of a warp."""
MMA_SUMS: Final = 4
"""Number of sums of each thread that a product of a warp adds to."""
MMA_ROW_ALIGNMENT: Final = 16
"""Alignment of the rows of a factor's tile in bytes."""
