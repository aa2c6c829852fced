"""The shapes of what a sequence of tokens passes to a program with a cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from intarsia.ir.cache import Cache
from intarsia.ir.dtype import DType
from intarsia.runtime.plan import ExecutionPlan, TensorInfo
from intarsia.support.errors import UsageError


@dataclass(frozen=True)
class SequenceForm:
    """A program with a cache for one batch.

    Attributes:
        plan: The plan of the program.
        cache: Its cache.
        batch: Number of texts that are read side by side.

    Raises:
        UsageError: The program is for another batch.
    """

    plan: ExecutionPlan
    cache: Cache
    batch: int

    def __post_init__(self) -> None:
        """Check the batch."""
        dim = (self._inputs[self.cache.token_inputs[0][0]].shape or (self.batch,))[0]
        if self.batch < 1 or (isinstance(dim, int) and dim not in (-1, self.batch)):
            expected = f"{dim}, for which the program is" if isinstance(dim, int) else "1 or more"
            raise UsageError(f"batch is {self.batch}, expected {expected}")

    @cached_property
    def step_inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs that the caller gives for each step; mask and positions are not among them."""
        cache = self.cache
        others = {state.input for state in cache.states} | {cache.mask, cache.positions, cache.length}
        return tuple(
            self._with_tokens(self._with_batch(info)) for info in self.plan.inputs if info.name not in others
        )

    @cached_property
    def given_inputs(self) -> Mapping[str, TensorInfo]:
        """The mask and the positions of new tokens, which the caller may give: (batch, new tokens)."""
        names = [name for name in (self.cache.mask, self.cache.positions) if name]
        return {name: replace(self._inputs[name], shape=(self.batch, "?")) for name in names}

    @cached_property
    def results(self) -> tuple[TensorInfo, ...]:
        """The outputs that are no states."""
        states = {state.output for state in self.cache.states}
        return tuple(info for info in self.plan.outputs if info.name not in states)

    def dtype(self, name: str) -> np.dtype[Any]:
        """Return the element type of an input."""
        return DType(self._inputs[name].dtype).numpy

    def state_shape(self, name: str, axis: int, tokens: int) -> tuple[int, ...]:
        """Return the shape of a state's input, or of the new part of it, with a number of tokens."""
        shape = self._with_batch(self._inputs[name]).shape or ()
        return tuple(tokens if at == axis else int(dim) for at, dim in enumerate(shape))

    def result_shape(self, info: TensorInfo, tokens: int) -> tuple[int, ...] | None:
        """Return the shape of an output that is no state for a number of tokens, None if it is not known."""
        axes = dict(self.cache.token_outputs)
        shape = self._with_batch(info).shape
        if shape is None:
            return None
        sizes = tuple(tokens if axes.get(info.name) == at else dim for at, dim in enumerate(shape))
        shape = tuple(size for size in sizes if isinstance(size, int) and size >= 0)
        return shape if len(shape) == len(sizes) else None

    @cached_property
    def _inputs(self) -> Mapping[str, TensorInfo]:
        return {info.name: info for info in self.plan.inputs}

    def _with_tokens(self, info: TensorInfo) -> TensorInfo:
        """Return an input for any number of tokens."""
        axis = dict(self.cache.token_inputs).get(info.name)
        shape = tuple("tokens" if at == axis else dim for at, dim in enumerate(info.shape or ()))
        return info if axis is None else replace(info, shape=shape)

    def _with_batch(self, info: TensorInfo) -> TensorInfo:
        """Return an input with the batch in place of its symbol."""
        batch = (self._inputs[self.cache.token_inputs[0][0]].shape or ("?",))[0]
        if info.shape is None or not isinstance(batch, str):
            return info
        return replace(info, shape=tuple(self.batch if dim == batch else dim for dim in info.shape))
