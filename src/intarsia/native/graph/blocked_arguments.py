"""Arguments of a group on blocked tensors: placeholders and their sources."""

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
    """A form has no declaration on blocked tensors."""


@dataclass(eq=False)
class BlockedArguments:
    """The placeholders declared so far.

    Attributes:
        values: Values of the region.
        sources: Source of each placeholder.
    """

    values: Sequence[RegionValue]
    sources: dict[Tensor, Source] = field(default_factory=dict)
    _placeholders: dict[tuple[int, SourceForm, tuple[int, ...]], Tensor] = field(default_factory=dict)

    def blocked(self, number: int, order: ChannelOrder) -> Tensor:
        """Return a placeholder (N, blocks, spatial ..., lanes) for a value with channels in an order."""
        return self._given(number, SourceForm.BLOCKED, self._shape_in(number, order), order)

    def words(self, number: int, order: ChannelOrder) -> Tensor:
        """Return a placeholder (N, blocks, spatial ..., words of a block) for the words of narrow numbers."""
        *outer, lanes = self._shape_in(number, order)
        count = DType.INT32.numpy.itemsize // self.values[number].type.dtype.numpy.itemsize
        return self._given(number, SourceForm.BLOCKED, (*outer, lanes // count), order, DType.INT32)

    def images(self, number: int, order: ChannelOrder, dtype: DType | None = None) -> Tensor:
        """Return a placeholder (N, elements of an image) for a value with channels in an order.

        Args:
            number: Number of the value.
            order: Order of its channels.
            dtype: Type of the same size that elements are read as; their own if not given.
        """
        batch, *rest = self._shape_in(number, order)
        return self._given(number, SourceForm.BLOCKED, (batch, prod(rest)), order, dtype)

    def plain(self, number: int) -> Tensor:
        """Return a placeholder for a value in the plain layout of its type."""
        return self._given(number, SourceForm.PLAIN, self.values[number].type.static_shape)

    def stretched(self, number: int, shape: tuple[int, ...]) -> Tensor:
        """Return a placeholder for a value with one channel that is broadcast over the blocks of others."""
        return self._given(number, SourceForm.ONE_CHANNEL, shape)

    def constant(self, number: int | None) -> Array:
        """Return the elements of a constant value.

        Raises:
            NotBlockedError: The value is not constant.
        """
        constant = None if number is None else self.values[number].constant
        if constant is None:
            raise NotBlockedError
        return constant

    def packed(self, array: Array) -> Tensor:
        """Return a placeholder for a packed constant of the group.

        Aligned here, so that it is not copied again.
        """
        return self._declared(aligned_array(array))

    def _declared(self, array: Array) -> Tensor:
        tensor = placeholder(array.shape, DType.of(array), f"c{len(self.sources)}", {"constant": 1})
        self.sources[tensor] = Source(-1, SourceForm.PLAIN, np.require(array, requirements="C"))
        return tensor

    def _shape_in(self, number: int, order: ChannelOrder) -> tuple[int, ...]:
        batch, _, *spatial = self.values[number].type.static_shape
        return (batch, order.blocks, *spatial, order.lanes)

    def _given(
        self,
        number: int,
        form: SourceForm,
        shape: tuple[int, ...],
        order: ChannelOrder | None = None,
        dtype: DType | None = None,
    ) -> Tensor:
        key = number, form, shape
        if key not in self._placeholders:
            constant = self.values[number].constant
            if constant is not None and order is None:
                return self._declared(constant.reshape(shape))
            held = dtype or self.values[number].type.dtype
            tensor = placeholder(shape, held, f"x{len(self.sources)}")
            self._placeholders[key] = tensor
            self.sources[tensor] = Source(number, form, order=order)
        return self._placeholders[key]
