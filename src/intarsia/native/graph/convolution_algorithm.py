"""Algorithms of convolutions of blocked tensors: direct, or with Winograd's transforms."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Final, NamedTuple, Self

from intarsia.ir import Call
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.relative_costs import REFERENCE_COSTS, RelativeCosts
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.blocked_layout import BLOCKED, TILE, WINOGRAD
from intarsia.native.te.operators.windows import windows_of
from intarsia.native.te.operators.winograd import TAPS
from intarsia.op.window import AxisWindow

# Costs in units of one multiplication, measured on convolutions of 7 to 224 pixels per row with 16 to 512
# channels (Zen 3, AVX2). Loads are scaled to the machine at hand; transforms and copies are vector
# instructions like the multiplications, whose number does not depend on the machine.
_WEIGHT_COST: Final = 14.0
"""Cost of a weight that is loaded from memory, as are all weights of a large network."""
_POINT_COST: Final = 16.0
"""Cost of the transforms of one point of an input or a result tile."""
_CACHED_WEIGHT_COST: Final = 1.0
"""Cost of a weight that another phase of a dilated convolution has loaded before."""
_COPY_COST: Final = 16.0
"""Cost of moving a result from its phase of a dilated convolution to its place."""
_LEAST_GROUP_CHANNELS: Final = 8
"""Minimum number of channels that a group of a transformed convolution reads, and computes."""
_LEAST_SKIPPED_COLUMNS: Final = 6
"""Minimum dilation at which padding fills whole register tiles of a row."""
_LEAST_GAIN: Final = 1.1
"""Minimum estimated speedup of transforms; the estimate is not more accurate."""


class ConvolutionAlgorithm(Enum):
    """Algorithm of the convolutions for which Winograd's transforms exist.

    Attributes:
        AUTO: The algorithm with the fastest estimate, among those of about equal accuracy.
        DIRECT: Sums of products of inputs and weights.
        WINOGRAD_2: F(2, 3) where possible, else direct.
        WINOGRAD_4: F(4, 3) where possible, else direct.
        WINOGRAD_6: F(6, 3) where possible, else direct; its error is about ten times that of direct sums.
    """

    AUTO = "auto"
    DIRECT = "direct"
    WINOGRAD_2 = "winograd_2"
    WINOGRAD_4 = "winograd_4"
    WINOGRAD_6 = "winograd_6"

    @property
    def tile(self) -> int:
        """Size of Winograd's tiles; 0 for algorithms without tiles."""
        return int(self.value[-1]) if self.value.startswith("winograd") else 0


ACCURATE_TRANSFORMS: Final = (ConvolutionAlgorithm.WINOGRAD_2, ConvolutionAlgorithm.WINOGRAD_4)
"""Algorithms that AUTO considers besides direct sums; F(6, 3) is less accurate."""


class ConvolutionShape(NamedTuple):
    """The shape of a 3 x 3 convolution of one image, for which an algorithm is chosen.

    Attributes:
        input_channels: Number of channels of the input.
        rows: Number of rows of the result.
        columns: Number of columns of the result.
        output_channels: Number of channels of the result.
        groups: Number of groups of channels.
        dilation: Distance from one tap to the next, along both dimensions.
    """

    input_channels: int
    rows: int
    columns: int
    output_channels: int
    groups: int = 1
    dilation: int = 1

    def __str__(self) -> str:
        text = "x".join(map(str, self[:4]))
        text += f"/{self.groups}" if self.groups > 1 else ""
        return f"{text}d{self.dilation}" if self.dilation > 1 else text

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the result of `str`: "64x56x56x64", or "64x56x56x64/4d2" for 4 groups and a dilation of 2."""
        text, _, dilation = text.partition("d")
        extents, _, groups = text.partition("/")
        input_channels, rows, columns, output_channels = map(int, extents.split("x"))
        return cls(input_channels, rows, columns, output_channels, int(groups or 1), int(dilation or 1))

    @property
    def multiply_adds(self) -> int:
        """Number of multiply-adds by direct sums."""
        input_channels, rows, columns, output_channels, groups, _ = self
        return TAPS * TAPS * input_channels * rows * columns * output_channels // groups

    def tiles(self, tile: int) -> int:
        """Return the number of Winograd's tiles of a size, of all phases of a dilated convolution."""
        extents = [-(-extent // self.dilation) for extent in (self.rows, self.columns)]
        return self.dilation**2 * prod(-(-extent // tile) for extent in extents)


@dataclass(frozen=True, slots=True)
class ConvolutionAlgorithms:
    """Algorithms of convolutions by shape; as text "auto,64x56x56x64=direct".

    Attributes:
        default: Algorithm of all shapes that `others` does not contain.
        others: Pairs of a shape and its algorithm.
    """

    default: ConvolutionAlgorithm = ConvolutionAlgorithm.AUTO
    others: tuple[tuple[ConvolutionShape, ConvolutionAlgorithm], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the result of `str`: the target option `convolutions`, which was validated before."""
        default, *others = text.split(",")
        pairs = (pair.split("=") for pair in others)
        shapes = {ConvolutionShape.parse(shape): ConvolutionAlgorithm(name) for shape, name in pairs}
        return cls(ConvolutionAlgorithm(default), tuple(sorted(shapes.items())))

    def __str__(self) -> str:
        return ",".join(
            [self.default.value, *(f"{shape}={algorithm.value}" for shape, algorithm in self.others)]
        )

    def tile(self, shape: ConvolutionShape, costs: RelativeCosts = REFERENCE_COSTS) -> int:
        """Return Winograd's tile size for a convolution with transforms; 0 to compute it directly.

        Args:
            shape: Shape of the convolution.
            costs: Costs of the machine.
        """
        algorithm = dict(self.others).get(shape, self.default)
        return estimated_tile(shape, costs) if algorithm is ConvolutionAlgorithm.AUTO else algorithm.tile

    def is_faster_in_floats(self, shape: ConvolutionShape, costs: RelativeCosts, share: float) -> bool:
        """Return whether transforms in float32 are faster than direct sums of narrow numbers.

        Args:
            shape: Shape of the convolution.
            costs: Costs of the machine.
            share: Share of the time of direct sums in float32 that narrow numbers take.
        """
        tile = self.tile(shape, costs)
        if dict(self.others).get(shape, self.default) is not ConvolutionAlgorithm.AUTO or not tile:
            return tile > 0
        estimates = estimated_costs(shape, costs)
        best = min(cost for algorithm, cost in estimates.items() if algorithm.tile == tile)
        return best < share * estimates[ConvolutionAlgorithm.DIRECT]


BY_ESTIMATE: Final = ConvolutionAlgorithms()
"""Default algorithms: the fastest estimate for each shape."""


def transformable_shape(call: Call) -> ConvolutionShape | None:
    """Return the shape of a convolution for which there are transforms; None for other calls.

    These are convolutions with 3 x 3 windows of stride 1 and the same dilation along both dimensions. Groups
    have at least 8 channels: with fewer, transforms cannot pay.
    """
    if str(call.op) != "Conv":
        return None
    described = compute_call_of(call, "conv")
    output_channels, group_channels, *taps = described.input(1).shape
    groups = described.integer("group")
    if taps != [TAPS, TAPS] or (
        groups > 1 and min(group_channels, output_channels // groups) < _LEAST_GROUP_CHANNELS
    ):
        return None
    windows = windows_of(described, described.input(0).shape[2:], taps)
    dilations = {window.dilation for window in windows}
    if any(window.stride != 1 for window in windows) or len(dilations) > 1:
        return None
    rows, columns = (window.count for window in windows)
    return ConvolutionShape(group_channels * groups, rows, columns, output_channels, groups, *dilations)


def algorithm_names(dag: ComputeDAG) -> tuple[str, ...]:
    """Return the algorithms in the name of a kernel: "winograd4" for F(4, 3)."""
    return tuple(f"{WINOGRAD}{op.attrs[TILE]!r}" for op in dag.ops if op.attrs.get(BLOCKED) == WINOGRAD)


def estimated_tile(shape: ConvolutionShape, costs: RelativeCosts = REFERENCE_COSTS) -> int:
    """Return the tile size with the fastest estimate among accurate ones; 0 for direct sums.

    Args:
        shape: Shape of the convolution.
        costs: Costs of the machine, with as many threads as will run it.
    """
    estimates = estimated_costs(shape, costs)
    best = min(estimates, key=estimates.__getitem__)
    return best.tile if estimates[best] * _LEAST_GAIN < estimates[ConvolutionAlgorithm.DIRECT] else 0


def estimated_costs(
    shape: ConvolutionShape, costs: RelativeCosts = REFERENCE_COSTS
) -> dict[ConvolutionAlgorithm, float]:
    """Estimate the cost of a convolution with each accurate algorithm, in multiplications.

    Args:
        shape: Shape of the convolution.
        costs: Costs of the machine, with as many threads as will run it.
    """
    products = shape.output_channels * shape.input_channels // shape.groups * TAPS * TAPS
    direct = products * (shape.rows * shape.columns * _read_share(shape) + _WEIGHT_COST * costs.weights)
    return {
        ConvolutionAlgorithm.DIRECT: direct,
        **{algorithm: _cost(algorithm.tile, shape, costs) for algorithm in ACCURATE_TRANSFORMS},
    }


def _read_share(shape: ConvolutionShape) -> float:
    """Return the share of the products that are not with padding, if there is as much of it as is usual.

    Kernels skip the others by rows, and along a row where a whole register tile reads padding. Without
    dilation that is little, and within the measured costs.
    """
    rows, columns, dilation = shape.rows, shape.columns, shape.dilation
    if dilation == 1:
        return 1.0
    share = AxisWindow(rows, rows, TAPS, 1, dilation, dilation).share
    if dilation < _LEAST_SKIPPED_COLUMNS:
        return share
    return share * AxisWindow(columns, columns, TAPS, 1, dilation, dilation).share


def _cost(tile: int, shape: ConvolutionShape, costs: RelativeCosts) -> float:
    """Return the cost of multiplications, weight loads and transforms."""
    input_channels, rows, columns, output_channels, groups, dilation = shape
    tiles, points, phases = shape.tiles(tile), (tile + TAPS - 1) ** 2, dilation**2
    copy = _COPY_COST * output_channels * rows * columns if phases > 1 else 0.0
    # The first phase loads the weights from memory, the others from a cache.
    loads = _WEIGHT_COST * costs.weights + _CACHED_WEIGHT_COST * costs.second * (phases - 1)
    return copy + points * (
        output_channels * input_channels // groups * (tiles + loads)
        + tiles * (output_channels + input_channels) * _POINT_COST
    )
