"""A call of an executable on arrays that stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from intarsia.runtime.entry_points import EntryPoints
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.output_check import copy_results
from intarsia.runtime.plan import TensorInfo
from intarsia.runtime.runners import Runner
from intarsia.runtime.straight_line import StraightLine

Run = Callable[[], None]


class BoundCall:
    """A program with bound inputs and outputs: each call reads the ones anew, and writes the others.

    It keeps the executable and the arrays alive, and takes turns with other calls of the executable.

    Attributes:
        outputs: The arrays that it writes.
    """

    __slots__ = ("_run", "outputs")

    def __init__(self, run: Run, outputs: Sequence[Array]) -> None:
        self._run = run
        self.outputs = tuple(outputs)

    def __call__(self) -> None:
        """Run the program on what the inputs contain now.

        Raises:
            ExecutionError: A kernel failed.
            UsageError: The executable is closed.
        """
        self._run()


class BoundSteps:
    """The steps of a program on arrays that stay where they are; one run at a time.

    Args:
        outputs: Outputs of the program.
        inputs: Inputs that were checked.
        buffers: Buffers of the outputs, which were checked.
        entries: Entry points of the program.
    """

    def __init__(
        self,
        outputs: Sequence[TensorInfo],
        inputs: Sequence[Value],
        buffers: Sequence[Array],
        entries: EntryPoints,
    ) -> None:
        self._outputs, self._inputs, self._buffers = outputs, inputs, buffers
        self._bind(entries)

    def run(self, entries: EntryPoints) -> None:
        """Run all steps; the entry points are others in a forked child."""
        if entries is not self._entries:
            self._bind(entries)
        for step in self._steps:
            step()

    def _bind(self, entries: EntryPoints) -> None:
        self._entries, runner = entries, entries.of(self._inputs).runner
        steps = runner.bind(self._inputs, self._buffers) if isinstance(runner, StraightLine) else None
        self._steps: Sequence[Callable[[], object]] = (
            [partial(self._run_into, runner)] if steps is None else steps
        )

    def _run_into(self, runner: Runner) -> None:
        copy_results(self._outputs, runner.run_into(self._inputs, self._buffers), self._buffers)
