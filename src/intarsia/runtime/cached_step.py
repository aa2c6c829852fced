"""One step of a decoder over buffers that stay where they are: a number of tokens at a capacity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from intarsia.ir.dtype import DType
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.plan import ExecutionPlan
from intarsia.runtime.sequence_form import SequenceForm


class CachedProgram(Protocol):
    """What a sequence of tokens needs of an executable."""

    @property
    def plan(self) -> ExecutionPlan:
        """The plan, with a cache."""

    def run_flat(self, /, *args: object) -> list[Value]:
        """Run the program and return its results as a flat list."""

    def bind(self, inputs: Sequence[object], outputs: Sequence[Array]) -> Callable[[], None]:
        """Return a function that runs the program on arrays that stay where they are."""


class CachedStep:
    """Buffers for the inputs and outputs of a step, and the program that is bound to them.

    Args:
        executable: The program.
        form: Shapes of its inputs and outputs.
        states: Buffers of the states, in the order of the cache.
        shapes: Shapes of the inputs that are no states, by name.
        tokens: Number of new tokens.

    Attributes:
        inputs: Buffers of the inputs that are no states, by name.
        results: The outputs that are no states; overwritten by each run.
    """

    def __init__(
        self,
        executable: CachedProgram,
        form: SequenceForm,
        states: Sequence[Array],
        shapes: Mapping[str, tuple[int, ...]],
        tokens: int,
    ) -> None:
        self._states = tuple(zip(form.cache.states, states, strict=True))
        self.inputs = {name: np.zeros(shape, form.dtype(name)) for name, shape in shapes.items()}
        by_name = self.inputs | {state.input: buffer for state, buffer in self._states}
        arguments = [by_name[info.name] for info in executable.plan.inputs]
        self._numbers = {info.name: number for number, info in enumerate(executable.plan.outputs)}
        self._result_numbers = [self._numbers[info.name] for info in form.results]
        outputs = _new_outputs(executable, form, tokens)
        self._call: Callable[[], Sequence[Array]]
        if outputs is None:
            self._call = lambda: executable.run_flat(*arguments)  # type: ignore[assignment,return-value]  # all are tensors
        else:
            bound = executable.bind(arguments, outputs)
            self._call = lambda: _run_bound(bound, outputs)
        self.results: Sequence[Array] = ()

    def run(self, length: int, tokens: int) -> None:
        """Run the program, and write what is new into the states.

        Args:
            length: Number of valid tokens of the states.
            tokens: Number of tokens to write behind them; at most the number of the step.

        Raises:
            ExecutionError: A kernel failed.
            UsageError: The executable is closed.
        """
        outputs = self._call()
        for state, buffer in self._states:
            before = (slice(None),) * state.axis
            new = outputs[self._numbers[state.output]]
            buffer[(*before, slice(length, length + tokens))] = new[(*before, slice(tokens))]
        self.results = [outputs[number] for number in self._result_numbers]


def _run_bound(call: Callable[[], None], outputs: Sequence[Array]) -> Sequence[Array]:
    call()
    return outputs


def _new_outputs(executable: CachedProgram, form: SequenceForm, tokens: int) -> list[Array] | None:
    """Return a buffer for each output, None if the shape of one is not known before the run."""
    states = {state.output: state for state in form.cache.states}
    buffers = []
    for info in executable.plan.outputs:
        state = states.get(info.name)
        shape = (
            form.result_shape(info, tokens)
            if state is None
            else form.state_shape(state.input, state.axis, tokens)
        )
        if shape is None:
            return None
        buffers.append(np.empty(shape, DType(info.dtype).numpy))
    return buffers
