"""A call of an executable on arrays that stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intarsia.runtime.entry_points import EntryPoints
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.output_check import copy_results
from intarsia.runtime.plan import TensorInfo
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


def bound_steps(
    outputs: Sequence[TensorInfo], entries: EntryPoints, inputs: Sequence[Value], buffers: Sequence[Array]
) -> Sequence[Callable[[], object]]:
    """Return functions that run a program in this order; only one of them may run at a time.

    Args:
        outputs: Outputs of the program.
        entries: Entry points of the program.
        inputs: Inputs that were checked.
        buffers: Buffers of the outputs, which were checked.
    """
    runner = entries.of(inputs).runner
    steps = runner.bind(inputs, buffers) if isinstance(runner, StraightLine) else None
    if steps is not None:
        return steps
    return [lambda: copy_results(outputs, runner.run_into(inputs, buffers), buffers)]
