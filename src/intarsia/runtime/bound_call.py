"""A call of an executable on arrays that stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intarsia.runtime.kernel import Array

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
