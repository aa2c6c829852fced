"""Bands of rows: convolutions by Winograd's transforms in tiles of several rows."""

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

_HEIGHT: Final = 8
"""Rows of a band: two rows of tiles of F(4, 3), so that a weight is used twice as often as by one."""
_WIDTHS: Final = (12, 8)
"""Columns of tiles of a band: their sums are all multiples of 4 from 8 on."""
_USUAL_EXTENT: Final = 28
"""Rows and columns of an image by which it is decided whether transforms pay."""
_CACHE_SHARE: Final = 4
"""Ratio of the bytes of F(4, 3)'s weights to the second-level cache up to which they are read fast enough.

They are read for each tile, of which there are several in a small image. F(2, 3) has 4 of 9 of them: 14 x 14
pixels of 256 channels take 0.78 ms by F(4, 3) and 0.64 ms by F(2, 3), 28 x 28 pixels of 128 channels 0.45 and
0.64 ms (Zen 5)."""


@dataclass(frozen=True, slots=True)
class BandForm:
    """How a convolution is computed by bands.

    Attributes:
        algorithm: Algorithm of the convolution.
        height: Rows of a band.
        widths: Columns of the tiles of a band, widest first.
    """

    algorithm: ConvolutionAlgorithm
    height: int
    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BandForms:
    """The rule for bands.

    Attributes:
        algorithms: Algorithms of convolutions, an option of the target.
        costs: Costs of the machine.
        cache: Size of the second-level cache, in bytes.
    """

    algorithms: ConvolutionAlgorithms
    costs: RelativeCosts
    cache: int

    def form(self, steps: Sequence[KernelStep]) -> BandForm | None:
        """Return how a group of operators is computed by bands; None if only row by row."""
        shapes = [shape for step in steps if (shape := transformable_shape(step.call)) is not None]
        if len(shapes) != 1 or shapes[0].dilation > 1:
            return None
        usual = shapes[0]._replace(rows=_USUAL_EXTENT, columns=_USUAL_EXTENT)
        tile = self.algorithms.tile(usual, self.costs)
        if not tile:
            return None
        algorithm = ConvolutionAlgorithm(f"winograd_{tile}")
        if self.algorithms.default is ConvolutionAlgorithm.AUTO and tile > 2:
            points = (tile + TAPS - 1) ** 2
            weights = points * usual.input_channels * usual.output_channels // usual.groups
            if weights * DType.FLOAT32.numpy.itemsize > _CACHE_SHARE * self.cache:
                algorithm = ConvolutionAlgorithm.WINOGRAD_2
        return BandForm(algorithm, _HEIGHT, _WIDTHS)
