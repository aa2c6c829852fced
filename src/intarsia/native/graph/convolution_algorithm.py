"""By which algorithm a convolution of a blocked tensor is computed: directly, or by Winograd's transforms."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Self

from intarsia.ir import Call
from intarsia.native.dag import ComputeDAG
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.blocked_layout import BLOCKED, TILE, WINOGRAD
from intarsia.native.te.operators.windows import windows_of
from intarsia.native.te.operators.winograd import TAPS

# Costs in products, by measurement on convolutions of 7 to 224 pixels in a row with 16 to 512 channels.
_WEIGHT_COST: Final = 14.0
"""What a weight costs that comes from memory, as all do in a network of some size."""
_POINT_COST: Final = 16.0
"""What the transforms of a number of an input or a result cost."""
_LEAST_GAIN: Final = 1.1
"""Transforms must be estimated to be so many times as fast, as the estimate is none better."""


class ConvolutionAlgorithm(Enum):
    """How convolutions are computed that can be computed in several ways.

    Attributes:
        AUTO: By the one that is estimated to be fastest for each, of those that are about as accurate.
        DIRECT: As sums of products of inputs and weights.
        WINOGRAD_2: By F(2, 3), where it is possible; else directly.
        WINOGRAD_4: By F(4, 3).
        WINOGRAD_6: By F(6, 3), whose error is about ten times that of direct sums.
    """

    AUTO = "auto"
    DIRECT = "direct"
    WINOGRAD_2 = "winograd_2"
    WINOGRAD_4 = "winograd_4"
    WINOGRAD_6 = "winograd_6"

    @property
    def tile(self) -> int:
        """The size of Winograd's tiles; 0 if it has none."""
        return int(self.value[-1]) if self.value.startswith("winograd") else 0


_CHOSEN: Final = (ConvolutionAlgorithm.WINOGRAD_2, ConvolutionAlgorithm.WINOGRAD_4)
"""What AUTO may choose: F(6, 3) is not as accurate."""


class ConvolutionShape(NamedTuple):
    """What an algorithm is chosen for: a convolution of 3 by 3 of one image.

    Attributes:
        read: Channels of the input.
        rows: Of the result.
        columns: Of the result.
        made: Channels of the result.
    """

    read: int
    rows: int
    columns: int
    made: int

    def __str__(self) -> str:
        return "x".join(map(str, self))


@dataclass(frozen=True, slots=True)
class ConvolutionAlgorithms:
    """Which algorithm computes which convolutions; as text "auto,64x56x56x64=direct".

    Attributes:
        default: Of all that are not named.
        others: By shape.
    """

    default: ConvolutionAlgorithm = ConvolutionAlgorithm.AUTO
    others: tuple[tuple[ConvolutionShape, ConvolutionAlgorithm], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """What `str` has written: the target option `convolutions`, which has been checked."""
        default, *others = text.split(",")
        pairs = (each.split("=") for each in others)
        shapes = {
            ConvolutionShape(*map(int, shape.split("x"))): ConvolutionAlgorithm(name) for shape, name in pairs
        }
        return cls(ConvolutionAlgorithm(default), tuple(sorted(shapes.items())))

    def __str__(self) -> str:
        return ",".join([self.default.value, *(f"{shape}={each.value}" for shape, each in self.others)])

    def tile(self, shape: ConvolutionShape) -> int:
        """The size of tiles for a convolution that may be one by transforms; 0 if it is computed directly."""
        found = dict(self.others).get(shape, self.default)
        return estimated_tile(shape) if found is ConvolutionAlgorithm.AUTO else found.tile


BY_ESTIMATE: Final = ConvolutionAlgorithms()
"""What is done without a word about it."""


def transformable_shape(call: Call) -> ConvolutionShape | None:
    """The shape of a convolution for which there are transforms; None for other calls.

    These are sums over all channels in windows of 3 by 3 side by side.
    """
    if str(call.op) != "Conv":
        return None
    described = compute_call_of(call, "conv")
    made, read, *taps = described.input(1).shape
    if taps != [TAPS, TAPS] or described.integer("group") != 1:
        return None
    windows = windows_of(described, described.input(0).shape[2:], taps)
    if any(window.stride != 1 or window.dilation != 1 for window in windows):
        return None
    return ConvolutionShape(read, windows[0].count, windows[1].count, made)


def algorithm_names(dag: ComputeDAG) -> tuple[str, ...]:
    """What the name of a kernel says about how it computes: "winograd4" for F(4, 3)."""
    return tuple(f"{WINOGRAD}{op.attrs[TILE]!r}" for op in dag.ops if op.attrs.get(BLOCKED) == WINOGRAD)


def estimated_tile(shape: ConvolutionShape) -> int:
    """The size of tiles that is estimated to be fastest, of those that are accurate; 0 for direct sums."""
    costs = estimated_costs(shape)
    best = min(costs, key=costs.__getitem__)
    return best.tile if costs[best] * _LEAST_GAIN < costs[ConvolutionAlgorithm.DIRECT] else 0


def estimated_costs(shape: ConvolutionShape) -> dict[ConvolutionAlgorithm, float]:
    """What a convolution takes by each accurate algorithm, in products."""
    products = shape.made * shape.read * TAPS * TAPS
    direct = products * (shape.rows * shape.columns + _WEIGHT_COST)
    return {ConvolutionAlgorithm.DIRECT: direct, **{each: _cost(each.tile, shape) for each in _CHOSEN}}


def _cost(tile: int, shape: ConvolutionShape) -> float:
    """Of products, of reading weights, and of transforms."""
    read, rows, columns, made = shape
    tiles = -(-rows // tile) * -(-columns // tile)
    points = (tile + TAPS - 1) ** 2
    return points * (made * read * (tiles + _WEIGHT_COST) + tiles * (made + read) * _POINT_COST)
