"""Where images are in memory, and the calls that fill their borders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.size_table import Linear, Polynomial, added, constant, product, total
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.region_plan import Array
from intarsia.native.sizes.image_loops import ImageAccess
from intarsia.native.sizes.image_writer import ImageMove, Move
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.toolchain.native.images.image_program import Image, Level, MixedImagesError

BYTES: Final = 4
"""Bytes of an element."""


@dataclass(frozen=True, slots=True, eq=False)
class TileKernel:
    """The code for tiles.

    Attributes:
        dags: Computation of a tile of each width, widest first.
        accesses: The placeholders and the result that are images, by name.
        tile: Rows and columns of a tile of a grid, whose numbers are then the widths; 0 for rows.
    """

    dags: Mapping[int, ComputeDAG]
    accesses: Mapping[str, ImageAccess]
    tile: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where an array begins: in the caller's memory, or in a storage.

    Attributes:
        slot: Position among parameters, then results; None for a storage.
        storage: Number of the storage.
        begin: Offset in bytes.
    """

    slot: int | None
    storage: int = -1
    begin: Polynomial = ()


Given: TypeAlias = "Place | Array"


@dataclass(frozen=True, slots=True, eq=False)
class PlannedCall:
    """A call of a kernel.

    Attributes:
        kernel: Code for tiles, or a move.
        arrays: Arrays by the name of the placeholder; for moves what is read, then what is written.
        numbers: Numbers that the kernel is given; for tiles those in front of the strides of arrays.
        strides: For tiles, the strides of each array with images, by name.
        name: Name in profiles.
        nodes: Names of the nodes of the source that it computes.
    """

    kernel: TileKernel | ImageMove
    arrays: Mapping[str, Given]
    numbers: tuple[Polynomial, ...]
    strides: Mapping[str, tuple[Polynomial, ...]]
    name: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where an image is.

    Attributes:
        origin: Place at which its array begins.
        lanes: Number of channels of a block; 0 for a plain layout.
        pitch: Pixels from row to row.
        plane: Pixels from plane to plane.
        image: Pixels from image to image.
        first: Offset of its first pixel, in pixels.
        step: Pixels from one of its pixels to the next, in both directions.
    """

    origin: Place
    lanes: int
    pitch: Polynomial
    plane: Polynomial
    image: Polynomial
    first: Polynomial
    step: int = 1


@dataclass(eq=False)
class ImageMemory:
    """The memory of images so far.

    Attributes:
        count: Number of images of a call.
        lanes: Number of channels of a block.
        orders: Order of the channels of each blocked image, by its number.
        calls: Calls so far; those that fill borders are added.
        storages: Size of each storage in bytes.
    """

    count: Linear
    lanes: int
    orders: dict[int, ChannelOrder] = field(default_factory=dict)
    calls: list[PlannedCall] = field(default_factory=list)
    storages: list[Polynomial] = field(default_factory=list)
    _layouts: dict[int, Layout] = field(default_factory=dict)

    def plain_layout(self, image: Image, origin: Place) -> Layout:
        """Return the layout of an array whose channels are not in blocks."""
        rows, columns = image.level
        plane = product(rows, columns)
        return Layout(
            origin, 0, product(columns), plane, product(rows, columns, constant(image.channels)), ()
        )

    def layout(self, image: Image) -> Layout:
        """Return where an image is that was written."""
        if image.param is not None:
            return self.plain_layout(image, Place(image.param))
        return self._layouts[image.number]

    def target(self, image: Image) -> Layout:
        """Return where an image is written; its memory is reserved, and its border filled, when it is new."""
        if image.phase is not None:
            phase = image.phase
            whole = self.target(phase.whole)
            shift = total(times(whole.pitch, phase.row), product(constant(phase.column)))
            return replace(whole, first=total(whole.first, shift), step=phase.step)
        if image.whole is not None:
            whole = self.target(image.whole)
            parts = image.whole.parts
            before = parts[: next(at for at, part in enumerate(parts) if part is image)]
            blocks = sum(self.orders[part.number].blocks for part in before)
            layout = replace(whole, first=total(whole.first, times(whole.plane, blocks)))
            self._layouts[image.number] = layout
            return layout
        if image.number not in self._layouts:
            self._layouts[image.number] = self._reserved(image)
        return self._layouts[image.number]

    def _reserved(self, image: Image) -> Layout:
        top, left, bottom, right, fill = self._border(image)
        rows, columns = image.level
        wide = added(columns, constant(left + right))
        high = added(rows, constant(top + bottom))
        lanes = 0 if image.is_plain else self.lanes
        planes = image.channels if image.is_plain else self.orders[image.number].blocks
        of_image = product(high, wide, constant(planes))
        size = product(high, wide, constant(planes * max(1, lanes) * BYTES), self.count)
        self.storages.append(total(size, product(constant(ALIGNMENT))))
        pitch, plane = product(wide), product(high, wide)
        first = total(times(pitch, top), product(constant(left)))
        layout = Layout(Place(None, len(self.storages) - 1), lanes, pitch, plane, of_image, first)
        if fill is not None and any((top, left, bottom, right)):
            form = ImageMove(Move.BORDER, lanes, planes * max(1, lanes), value=fill)
            numbers = (
                product(self.count, constant(planes)),
                plane,
                pitch,
                total(times(pitch, top), product(constant(left))),
                product(added(rows, constant(-1))),
                product(constant(left + right)),
                total(times(pitch, top), product(constant(left)), product(columns)),
                total(
                    product(added(added(rows, constant(top)), constant(-1)), wide),
                    product(constant(left)),
                    product(columns),
                ),
                total(product(constant(right)), times(pitch, bottom)),
            )
            self.calls.append(PlannedCall(form, {"y": layout.origin}, numbers, {}, "images: border"))
        return layout

    def _border(self, image: Image) -> tuple[int, int, int, int, float | None]:
        """Return the border of an image with those of its parts, and what it is filled with.

        Raises:
            MixedImagesError: Two parts have different ones.
        """
        images = [image, *image.parts]
        fills = {item.fill for item in images if item.fill is not None and any(item.border)}
        if len(fills) > 1:
            raise MixedImagesError("images that are joined have padding of different values")
        top, left, bottom, right = (max(item.border[at] for item in images) for at in range(4))
        return top, left, bottom, right, next(iter(fills), None)


def times(polynomial: Polynomial, factor: int) -> Polynomial:
    """Return a multiple of a polynomial."""
    return tuple((number * factor, positions) for number, positions in polynomial) if factor else ()


def shifted(layout: Layout, begins: Level) -> Place:
    """Return where the first window of an image begins, which may be in its border."""
    rows, columns = begins
    shift = total(layout.first, times(_scaled(layout.pitch, rows), -1), times(product(columns), -1))
    return replace(layout.origin, begin=times(shift, max(1, layout.lanes) * BYTES))


def _scaled(polynomial: Polynomial, linear: Linear) -> Polynomial:
    """Return the product of a polynomial and a linear form."""
    const, terms = linear
    parts = [
        tuple((number * coefficient, tuple(sorted((*positions, at)))) for number, positions in polynomial)
        for at, coefficient in terms
    ]
    return total(times(polynomial, const), *parts)
