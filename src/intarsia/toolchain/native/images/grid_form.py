"""Grids of tiles: convolutions by Winograd's transforms in tiles of some rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir import DType
from intarsia.native.graph.convolution_algorithm import (
    ConvolutionAlgorithm,
    ConvolutionAlgorithms,
    transformable_shape,
)
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.machine.relative_costs import RelativeCosts
from intarsia.native.te.operators.winograd import TAPS

_COUNTS: Final = (24, 16, 8, 4)
"""Numbers of tiles that are computed at once, so that each weight is read once for them: as many as there are
registers for sums with AVX-512, and fewer for small images and what is left."""
_NEAR, _FAR = 3, 16
"""Cost of reading the weights for a chunk, in tiles: from the second-level cache, and from farther away."""
_FEW_TILES: Final = 16
"""Ratio of the bytes of weights to the second-level cache up to which larger tiles pay.

Layers with more weights see small images. F(4, 3) has 4 times as many weights as direct sums, F(2, 3) 1.8."""
_USUAL_EXTENT: Final = 28
"""Rows and columns of an image by which it is decided whether transforms pay."""


@dataclass(frozen=True, slots=True)
class GridForm:
    """How a convolution is computed by a grid of tiles.

    Attributes:
        algorithm: Algorithm of the convolution.
        tile: Rows and columns of a tile.
        counts: Numbers of tiles that are computed at once, largest first.
        extra: Cost of reading the weights for some tiles, in tiles.
    """

    algorithm: ConvolutionAlgorithm
    tile: int
    counts: tuple[int, ...]
    extra: int


@dataclass(frozen=True, slots=True)
class GridForms:
    """The rule for grids.

    Attributes:
        algorithms: Algorithms of convolutions, an option of the target.
        costs: Costs of the machine.
        cache: Size of the second-level cache, in bytes.
    """

    algorithms: ConvolutionAlgorithms
    costs: RelativeCosts
    cache: int

    def form(self, steps: Sequence[KernelStep]) -> GridForm | None:
        """Return how a group of operators is computed by a grid of tiles; None if only row by row."""
        shapes = [shape for step in steps if (shape := transformable_shape(step.call)) is not None]
        if len(shapes) != 1 or shapes[0].dilation > 1:
            return None
        usual = shapes[0]._replace(rows=_USUAL_EXTENT, columns=_USUAL_EXTENT)
        tile = self.algorithms.tile(usual, self.costs)
        if not tile:
            return None
        weights = usual.input_channels * usual.output_channels // usual.groups * DType.FLOAT32.numpy.itemsize
        if (
            self.algorithms.default is ConvolutionAlgorithm.AUTO
            and (tile + TAPS - 1) ** 2 * weights > _FEW_TILES * self.cache
        ):
            tile = min(tile, ConvolutionAlgorithm.WINOGRAD_2.tile)
        extra = _NEAR if (tile + TAPS - 1) ** 2 * weights <= self.cache else _FAR
        return GridForm(ConvolutionAlgorithm(f"winograd_{tile}"), tile, _COUNTS, extra)
