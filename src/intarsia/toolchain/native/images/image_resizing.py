"""The rule for Resize: by whole factors, or to sizes that are expressions of the sizes of a call."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from intarsia.ir import Call, Constant
from intarsia.native.execution.size_table import Linear, added, constant
from intarsia.native.sizes.image_sampling import ALIGNED, ASYMMETRIC, HALF, Rounding
from intarsia.native.sizes.image_writer import ImageMove, Move
from intarsia.toolchain.native.images.image_program import ONE_PIXEL, RANK, Image, Level
from intarsia.toolchain.native.images.image_reader import ImageReader
from intarsia.toolchain.native.images.image_shapes import numbers_of

_MODES: Final = (
    ("mode", "nearest"),
    ("coordinate_transformation_mode", "half_pixel"),
    ("nearest_mode", "round_prefer_floor"),
)
_MOST_DENOMINATOR: Final = 1 << 28
"""Largest denominator of a factor: positions in images of 2**20 pixels are whole numbers of 64 bits."""
_HALVES: Final = (HALF, "pytorch_half_pixel", "half_pixel_symmetric")
"""Coordinates that are the same for whole factors."""


def resized(reader: ImageReader, call: Call) -> Image | None:
    """Return the result of Resize; None if it is no image.

    Raises:
        MixedImagesError: There is no kernel for it.
    """
    image = reader.images.get(call.args[0])
    if image is None:
        return None
    image = reader.in_blocks(image)
    args = [reader.numbers.get(arg) or numbers_of(arg) for arg in call.args]
    scales = _scales(call)
    sizes = args[3] if len(args) > 3 else None
    has_axes = call.attrs.get("axes") is not None
    ratios: tuple[tuple[int, int], ...] = ()
    if scales is not None and len(scales) == RANK and scales[:2] == [1, 1] and not has_axes:
        rows, columns = (
            reader.table.quotient(added(constant(0), extent, scale.numerator), scale.denominator)
            for extent, scale in zip(image.level, scales[2:], strict=True)
        )
        level: Level = rows, columns
        if any(scale.denominator > 1 for scale in scales):
            ratios = tuple((scale.numerator, scale.denominator) for scale in scales[2:])
    elif sizes is not None and (rows_and_columns := _rows_and_columns(reader, call, image, sizes.items)):
        level = rows_and_columns
    else:
        raise reader.refusal(call, "has factors or sizes that are not known")
    move = _move(reader, call, image, level)
    if ratios:
        if move.coordinates not in (HALF, ASYMMETRIC):
            raise reader.refusal(call, "has factors that are no whole numbers")
        move = replace(move, ratios=ratios)
    return reader.new(image.channels, level, move=move, source=reader.stored(image))


def _scales(call: Call) -> list[Fraction] | None:
    """Return the factors of Resize exactly; None if they are not constant, or have very long fractions."""
    scales = call.args[2] if len(call.args) > 2 else None
    if not isinstance(scales, Constant) or scales.data.ndim != 1 or not np.isfinite(scales.data).all():
        return None
    exact = [Fraction(float(scale)) for scale in scales.data]
    is_short = all(scale > 0 and scale.denominator <= _MOST_DENOMINATOR for scale in exact)
    return exact if is_short else None


def _rows_and_columns(
    reader: ImageReader, call: Call, image: Image, sizes: tuple[Linear, ...]
) -> Level | None:
    """Return rows and columns of the result, given its sizes; None if others change as well."""
    axes = call.attrs.get("axes")
    given = axes if isinstance(axes, tuple) else range(RANK)
    numbers = [axis % RANK for axis in given if isinstance(axis, int)]
    new = dict(zip(numbers, sizes, strict=False))
    kept = {0: reader.program.count, 1: constant(image.channels)}
    if len(new) != len(sizes) or any(new.get(axis, extent) != extent for axis, extent in kept.items()):
        return None
    rows, columns = (new.get(axis + 2, extent) for axis, extent in enumerate(image.level))
    is_stretched = call.attrs.get("keep_aspect_ratio_policy", "stretch") == "stretch"
    return (rows, columns) if is_stretched and (rows, columns) != ONE_PIXEL else None


def _move(reader: ImageReader, call: Call, image: Image, level: Level) -> ImageMove:
    """Return how an image is resized.

    Raises:
        MixedImagesError: There is no kernel for it.
    """
    mode, coordinates, nearest = (str(call.attrs.get(name, default)) for name, default in _MODES)
    factors = [_factor(before, after) for before, after in zip(image.level, level, strict=True)]
    if None not in factors:
        scale = factors[0] or 0, factors[1] or 0
        move = _move_by_factors(mode, coordinates, nearest, scale)
        if move is not None:
            return ImageMove(move, reader.lanes, image.channels, scale=scale)
    given = HALF if coordinates in _HALVES[:1] else coordinates
    is_enlarged = None not in factors and min(factor or 0 for factor in factors) >= 1
    if given in (HALF, ASYMMETRIC, ALIGNED) and mode in ("nearest", "linear"):
        if call.attrs.get("antialias", 0) and not is_enlarged:
            raise reader.refusal(call, "has no kernel for images of any size with antialias")
        form = Move.INTERPOLATE if mode == "linear" else Move.SAMPLE
        rounding = Rounding(nearest).value if form is Move.SAMPLE else ""
        return ImageMove(form, reader.lanes, image.channels, coordinates=given, rounding=rounding)
    text = f"{mode} and {coordinates}"
    raise reader.refusal(call, f"has no kernel for images of any size with {text}")


def _move_by_factors(mode: str, coordinates: str, nearest: str, scale: tuple[int, int]) -> Move | None:
    """Return how an image is enlarged by whole factors; None if there is no kernel for it."""
    if min(scale) < 1:
        return None
    is_half = coordinates in _HALVES
    if mode == "linear":
        return Move.LINEAR if is_half and min(scale) > 1 else None
    if mode != "nearest":
        return None
    floors = coordinates == ASYMMETRIC and (
        nearest == "floor" or (nearest == "round_prefer_floor" and max(scale) <= 2)
    )
    return Move.NEAREST if floors or (is_half and nearest.startswith("round_prefer")) else None


def _factor(extent: Linear, size: Linear) -> int | None:
    """Return the whole number by which an extent is multiplied; None if it is not."""
    const, terms = extent
    numbers = (const, *(number for _, number in terms))
    new = (size[0], *(number for _, number in size[1]))
    if [at for at, _ in terms] != [at for at, _ in size[1]]:
        return None
    factors = {after // before for before, after in zip(numbers, new, strict=True) if before}
    if len(factors) != 1:
        return None
    (factor,) = factors
    return factor if added(constant(0), extent, factor) == size else None
