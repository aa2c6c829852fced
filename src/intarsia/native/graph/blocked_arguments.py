"""What a group on blocked tensors is given: placeholders, and what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from intarsia.ir import DType
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.kernel_dag import Source, SourceForm
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.te import Tensor, placeholder
from intarsia.support.aligned_memory import aligned_array


class NotBlockedError(Exception):
    """A form that has no declaration on blocked tensors."""


@dataclass(eq=False)
class BlockedArguments:
    """The placeholders made so far.

    Attributes:
        values: All values of the region.
        sources: What each placeholder is.
    """

    values: Sequence[RegionValue]
    sources: dict[Tensor, Source] = field(default_factory=dict)
    _known: dict[tuple[int, SourceForm, tuple[int, ...]], Tensor] = field(default_factory=dict)

    def blocked(self, number: int, order: ChannelOrder) -> Tensor:
        """A value (N, blocks, spatial ..., lanes) with channels in an order."""
        return self._given(number, SourceForm.BLOCKED, self._shape_in(number, order), order)

    def images(self, number: int, order: ChannelOrder) -> Tensor:
        """The same as (N, elements of an image)."""
        batch, *rest = self._shape_in(number, order)
        return self._given(number, SourceForm.BLOCKED, (batch, prod(rest)), order)

    def plain(self, number: int) -> Tensor:
        """A value as its type says."""
        return self._given(number, SourceForm.PLAIN, self.values[number].type.static_shape)

    def stretched(self, number: int, shape: tuple[int, ...]) -> Tensor:
        """A value with one channel, as it is stretched over the blocks of others."""
        return self._given(number, SourceForm.ONE_CHANNEL, shape)

    def constant(self, number: int | None) -> Array:
        """The elements of a value.

        Raises:
            NotBlockedError: They are not known.
        """
        constant = None if number is None else self.values[number].constant
        if constant is None:
            raise NotBlockedError
        return constant

    def packed(self, array: Array) -> Tensor:
        """A constant made for the group; it is aligned here, so that nobody copies it again."""
        return self._declared(aligned_array(array))

    def _declared(self, array: Array) -> Tensor:
        made = placeholder(array.shape, DType.of(array), f"c{len(self.sources)}", {"constant": 1})
        self.sources[made] = Source(-1, SourceForm.PLAIN, np.require(array, requirements="C"))
        return made

    def _shape_in(self, number: int, order: ChannelOrder) -> tuple[int, ...]:
        batch, _, *spatial = self.values[number].type.static_shape
        return (batch, order.blocks, *spatial, order.lanes)

    def _given(
        self, number: int, form: SourceForm, shape: tuple[int, ...], order: ChannelOrder | None = None
    ) -> Tensor:
        key = number, form, shape
        if key not in self._known:
            constant = self.values[number].constant
            if constant is not None and order is None:
                return self._declared(constant.reshape(shape))
            made = placeholder(shape, DType.FLOAT32, f"x{len(self.sources)}")
            self._known[key] = made
            self.sources[made] = Source(number, form, order=order)
        return self._known[key]
