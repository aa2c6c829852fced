"""The code of kernels for tiles of images, before memory is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from intarsia.native.graph.kernel_dag import KernelDag
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te import Operation
from intarsia.native.te.operators.blocked_layout import BLOCKED, CONVOLUTION, GROUPED
from intarsia.toolchain.native.images.image_program import Image
from intarsia.toolchain.native.images.tile_program import TileRead

WIDTHS: Final = (8, 7, 6, 5, 4)
"""Widths of tiles. Deep layers read all weights for each tile, and have few columns: one tile of 5 to 7."""
PIXELS: Final = (8, 6, 5, 4)
"""Numbers of pixels of small images that are computed at once."""
POINTWISE_WIDTHS: Final = (8, 7, 6, 4)
POINTWISE_PIXELS: Final = (16, *PIXELS)
"""The same for convolutions of one tap, whose windows take little memory."""
_FEW_COLUMNS: Final = 10
"""Number of columns from which these are computed row by row: of fewer columns, each weight would be read for
few pixels.

Windows of several taps are computed row by row from 4 columns on, as they share what they read.
"""


@dataclass(frozen=True, slots=True, eq=False)
class TileVariant:
    """The code of a kernel for tiles of a row, or of a grid.

    Attributes:
        tile: Rows and columns of a tile of a grid, 1 for pixels; 0 for a row.
        dags: Computation by number of columns, or of tiles.
        reads: The image that each value that is read is, by the value's number.
        extra: Cost of some tiles of a grid beside the tiles, in tiles.
    """

    tile: int
    dags: Mapping[int, KernelDag]
    reads: Mapping[int, TileRead]
    extra: int = 0

    @property
    def multiplied(self) -> frozenset[str]:
        """Names of the placeholders that a convolution sums over channels directly."""
        return frozenset(tensor.op.name for op in self._sums for tensor in op.inputs)

    @property
    def is_pointwise(self) -> bool:
        """Whether it is a convolution of one tap."""
        return bool(self._sums) and all(prod(op.inputs[1].shape[2:4]) == 1 for op in self._sums)

    @property
    def _sums(self) -> list[Operation]:
        dag = next(iter(self.dags.values())).dag
        return [op for op in dag.ops if op.attrs.get(BLOCKED) in (CONVOLUTION, GROUPED)]


@dataclass(frozen=True, slots=True, eq=False)
class TileGroup:
    """Kernels for tiles that compute an image, before memory is planned.

    Attributes:
        image: The image.
        main: Code for a grid of tiles, or for single rows.
        pixels: Code for the pixels of small images; None if there are only images of one pixel.
        steps: The operators.
    """

    image: Image
    main: TileVariant
    pixels: TileVariant | None
    steps: Sequence[KernelStep]

    @property
    def least_columns(self) -> int:
        """Number of columns from which the image is computed row by row."""
        return _FEW_COLUMNS if self.main.is_pointwise else WIDTHS[-1]
