"""A sequence of tokens under way: the state of a decoder between calls, in buffers of fixed capacity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from intarsia.runtime.cached_step import CachedProgram, CachedStep
from intarsia.runtime.input_check import InputCheck
from intarsia.runtime.kernel import Array
from intarsia.runtime.sequence_form import SequenceForm
from intarsia.support.errors import InputError, UsageError

_Results: TypeAlias = "Array | tuple[Array, ...]"


class TokenSequence:
    """The keys and values of the tokens that were read, which a program with a cache reads at each step.

    They stay in buffers that grow from one capacity to the next. A call within a capacity copies none of them
    and allocates only the results that it returns; `step` allocates nothing.

    A sequence is for one thread at a time. Several sequences of one executable may be under way in any order.

    Args:
        executable: An executable of a program with a cache.
        batch: Number of texts that are read side by side, with equally many tokens each.

    Raises:
        UsageError: The program has no cache, or is for another batch.
    """

    def __init__(self, executable: CachedProgram, batch: int = 1) -> None:
        cache = executable.plan.cache
        if cache is None:
            raise UsageError(
                "the program has no cache, so there is no state to keep between calls",
                help="run the pass CacheInPlace on a decoder that takes keys and values of the past",
            )
        self._executable, self._cache = executable, cache
        self._form = SequenceForm(executable.plan, cache, batch)
        self._check = InputCheck(self._form.step_inputs)
        self._given_checks = {name: InputCheck((info,)) for name, info in self._form.given_inputs.items()}
        self._token_axes = dict(cache.token_inputs)
        self._buffers: dict[int, list[Array]] = {}
        self._steps: dict[tuple[object, ...], CachedStep] = {}
        self._length = 0
        self._capacity = cache.capacities[0]
        self._visible = np.zeros((batch, self.capacity), np.bool_)
        self._counts = np.zeros((batch, 1), np.int64)

    def __len__(self) -> int:
        """Return the number of tokens that were read."""
        return self._length

    @property
    def capacity(self) -> int:
        """The largest number of tokens that may be read."""
        return self._cache.capacities[-1]

    def __call__(self, /, *args: object, **named: object) -> _Results:
        """Read new tokens and return the other outputs for them; the results belong to the caller.

        Args:
            *args: Inputs in order, such as tokens (batch, new tokens); states, mask and positions are not
                among them.
            **named: Inputs by name. The mask and the positions of the new tokens, each (batch, new tokens),
                may be given too: by default all tokens are visible, and positions count visible tokens.

        Raises:
            InputError: An input does not fit, or there is no room for the tokens.
            ExecutionError: A kernel failed.
            UsageError: The executable is closed.
        """
        results = self.step(*args, **named)
        return tuple(map(np.copy, results)) if isinstance(results, tuple) else results.copy()

    def step(self, /, *args: object, **named: object) -> _Results:
        """Read new tokens as a call does; the next call may overwrite the results."""
        given = {name: named.pop(name) for name in self._given_checks if name in named}
        values = self._check.accept(args, named)
        inputs = {info.name: value for info, value in zip(self._form.step_inputs, values, strict=True)}
        name, axis = next(item for item in self._cache.token_inputs if item[0] in inputs)
        count = inputs[name].shape[axis]  # type: ignore[union-attr]  # a tensor, by its declaration
        self._require_room(count)
        rows = {key: self._accept_row(key, value, count) for key, value in given.items()}
        chunks = list(self._chunks(count))
        parts = []
        for part, size in chunks:
            results = self._read(inputs, rows, part, size)  # type: ignore[arg-type]  # tensors, as above
            parts.append(results if len(chunks) == 1 else list(map(np.copy, results)))
        results = parts[0] if len(parts) == 1 else self._joined(parts)
        return results[0] if len(results) == 1 else tuple(results)

    def reset(self) -> None:
        """Forget all tokens; buffers stay for the next ones."""
        for buffers in self._buffers.values():
            for buffer in buffers:
                buffer.fill(0)  # a stale NaN would survive its weight of 0
        self._visible[:] = False
        self._counts[:] = 0
        self._length, self._capacity = 0, self._cache.capacities[0]

    def clone(self) -> TokenSequence:
        """Return an independent sequence that has read the same tokens."""
        other = TokenSequence(self._executable, self._form.batch)
        for target, source in zip(other._states(self._capacity), self._states(self._capacity), strict=True):
            np.copyto(target, source)
        other._length, other._capacity = self._length, self._capacity
        other._visible, other._counts = self._visible.copy(), self._counts.copy()
        return other

    def _require_room(self, count: int) -> None:
        if count == 0:
            raise InputError("there are no new tokens, expected 1 or more")
        if self._length + count > self.capacity:
            raise InputError(
                f"the sequence has {self._length} tokens and {count} more are given, "
                f"but its cache has a capacity of {self.capacity}",
                help="call reset() to begin anew, or give the pass CacheInPlace a larger capacity",
            )

    def _accept_row(self, name: str, value: object, count: int) -> Array:
        (row,) = self._given_checks[name].accept((value,), {})
        assert isinstance(row, np.ndarray)
        if row.shape[1] != count:
            raise InputError(f'input "{name}" is for {row.shape[1]} new tokens, expected {count}')
        return row

    def _chunks(self, count: int) -> Iterator[tuple[slice, int]]:
        """Return the tokens of each call, and the number of tokens that it is made for."""
        sizes = self._cache.chunks or (count,)
        start = 0
        while start < count:
            # Tokens change nothing before them, so that a larger call serves fewer tokens.
            size = next((size for size in sizes if size >= count - start), sizes[-1])
            stop = min(start + size, count)
            yield slice(start, stop), size
            start = stop

    def _read(
        self, inputs: Mapping[str, Array], rows: Mapping[str, Array], part: slice, size: int
    ) -> Sequence[Array]:
        """Read some of the given tokens by one call, and return its results for them."""
        count = part.stop - part.start
        self._grow(self._length + count)
        step = self._step(inputs, size)
        for name, value in inputs.items():
            axis = self._token_axes.get(name)
            buffer = step.inputs[name]
            if axis is None:
                np.copyto(buffer, value)
            else:
                before = (slice(None),) * axis
                buffer[(*before, slice(count))] = value[(*before, part)]
        visible = rows[self._cache.mask][:, part] != 0 if self._cache.mask in rows else np.True_
        self._fill_rows(step, rows, part, visible)
        step.run(self._length, count)
        self._visible[:, self._length : self._length + count] = visible
        self._counts += count if visible is np.True_ else np.sum(visible, axis=1, keepdims=True)
        self._length += count
        axes = dict(self._cache.token_outputs)
        names = [info.name for info in self._form.results]
        return [
            result if count == size or name not in axes else _first(result, axes[name], count)
            for name, result in zip(names, step.results, strict=True)
        ]

    def _fill_rows(
        self, step: CachedStep, rows: Mapping[str, Array], part: slice, visible: np.bool_ | Array
    ) -> None:
        """Write mask, positions and length of a call."""
        cache, count = self._cache, part.stop - part.start
        if cache.mask:
            mask = step.inputs[cache.mask]
            mask[:, : self._capacity] = self._visible[:, : self._capacity]
            mask[:, self._capacity : self._capacity + count] = visible
            mask[:, self._capacity + count :] = 1
        if cache.positions:
            positions = step.inputs[cache.positions]
            if cache.positions in rows:
                positions[:, :count] = rows[cache.positions][:, part]
            elif visible is np.True_:
                np.add(self._counts, np.arange(positions.shape[1]), out=positions, casting="unsafe")
                positions[:, count:] = 0
            else:
                counted = self._counts + np.cumsum(visible, axis=1) - 1
                positions[:, :count] = np.maximum(counted, 0)
        if cache.length:
            step.inputs[cache.length][0] = self._length

    def _grow(self, tokens: int) -> None:
        """Move to the smallest capacity that has room for a number of tokens."""
        wanted = next(size for size in self._cache.capacities if size >= max(tokens, self._capacity))
        if wanted == self._capacity:
            return
        for state, old, new in zip(
            self._cache.states, self._states(self._capacity), self._states(wanted), strict=True
        ):
            valid = (*(slice(None),) * state.axis, slice(self._length))
            new[valid] = old[valid]
        self._capacity = wanted

    def _states(self, capacity: int) -> list[Array]:
        """Return the buffers of a capacity, which start with zeros: a weight of 0 times NaN would be NaN."""
        if capacity not in self._buffers:
            self._buffers[capacity] = [
                np.zeros(
                    self._form.state_shape(state.input, state.axis, capacity), self._form.dtype(state.input)
                )
                for state in self._cache.states
            ]
        return self._buffers[capacity]

    def _step(self, inputs: Mapping[str, Array], size: int) -> CachedStep:
        """Return the step of a number of tokens at the current capacity."""
        others = tuple(value.shape for name, value in inputs.items() if name not in self._token_axes)
        key = (self._capacity, size, others)
        if key not in self._steps:
            cache, batch = self._cache, self._form.batch
            shapes = {name: self._padded(name, value.shape, size) for name, value in inputs.items()}
            rows: dict[str, tuple[int, ...]] = {
                cache.mask: (batch, self._capacity + size),
                cache.positions: (batch, size),
                cache.length: (1,),
            }
            shapes |= {name: shape for name, shape in rows.items() if name}
            self._steps[key] = CachedStep(
                self._executable, self._form, self._states(self._capacity), shapes, size
            )
        return self._steps[key]

    def _padded(self, name: str, shape: tuple[int, ...], size: int) -> tuple[int, ...]:
        axis = self._token_axes.get(name)
        return tuple(size if at == axis else dim for at, dim in enumerate(shape))

    def _joined(self, parts: Sequence[Sequence[Array]]) -> list[Array]:
        """Return results of several calls joined along their tokens, if they have any; else the last."""
        axes = dict(self._cache.token_outputs)
        return [
            np.concatenate(results, axis=axes[info.name]) if info.name in axes else results[-1]
            for info, results in zip(self._form.results, zip(*parts, strict=True), strict=True)
        ]


def _first(result: Array, axis: int, count: int) -> Array:
    view: Array = result[(*(slice(None),) * axis, slice(count))]
    return view
