"""Kernels that convert a value to another layout."""

from __future__ import annotations

from math import prod

from intarsia.ir import DType
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.kernel_dag import KernelDag, Source, SourceForm, with_placeholders
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.te import Tensor, placeholder
from intarsia.native.te.operators.blocked_layout import from_blocked, to_blocked
from intarsia.native.te.operators.channel_tables import blocked_by_table, first_pixels, plain_by_table


def converted(value: RegionValue, number: int, order: ChannelOrder | None) -> KernelDag:
    """Return the kernel that copies a value into another layout.

    Args:
        value: Plain or blocked value.
        number: Number of the value.
        order: Channel order of the result, natural if the value is plain; None for a plain result.
    """
    batch, channels, *spatial = value.type.static_shape
    pixels = prod(spatial)  # one dimension of pixels: its loop is long
    shape = (
        (batch, channels, pixels) if value.order is None else (*value.stored_shape[:2], pixels, value.lanes)
    )
    x = placeholder(shape, value.type.dtype, "x0")
    source = {x: Source(number, SourceForm.AS_IT_IS)}
    match value.order, order:
        case None, ChannelOrder(lanes=lanes, groups=int(groups)):
            return with_placeholders((to_blocked(x, lanes, "to_blocked", groups),), source)
        case ChannelOrder(groups=int(groups)), None:
            # The blocks of a group are those of an image of its channels, which tiles transpose.
            images = placeholder((batch * groups, shape[1] // groups, *shape[2:]), value.type.dtype, "x0")
            plain = from_blocked(images, channels // groups, "from_blocked")
            return with_placeholders((plain,), {images: Source(number, SourceForm.AS_IT_IS)})
        case ChannelOrder() as given, _:
            return _by_table(value, number, given, order)
        case _:
            raise AssertionError("a copy of what is plain already")


def _by_table(value: RegionValue, number: int, given: ChannelOrder, order: ChannelOrder | None) -> KernelDag:
    batch, _, *spatial = value.type.static_shape
    x = placeholder((batch, prod(value.stored_shape[1:])), value.type.dtype, "x0")
    places = given.place_of if order is None else order.places_in(given)
    first = first_pixels(places, prod(spatial), given.lanes)
    first = first if order is None else first.reshape(order.blocks, order.lanes)
    table = placeholder(first.shape, DType.INT32, "c1", {"constant": 1})
    result: Tensor
    if order is None:
        result = plain_by_table(x, table, tuple(spatial), given.lanes, "from_blocked")
    else:
        result = blocked_by_table(x, table, tuple(spatial), given.lanes, "reordered_blocks")
    sources = {x: Source(number, SourceForm.AS_IT_IS), table: Source(-1, SourceForm.PLAIN, first)}
    return with_placeholders((result,), sources)
