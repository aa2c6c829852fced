"""Call a kernel, with its name in every error."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.runtime.kernel import Array, Kernel, Value
from intarsia.support.errors import ExecutionError, IntarsiaError


class NamedKernel:
    """A kernel with the name that errors and profiles show."""

    __slots__ = ("kernel", "name", "run_kernel")

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.kernel = kernel
        self.name = name
        self.run_kernel = kernel.run

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """Run the kernel.

        Raises:
            ExecutionError: It failed.
        """
        try:
            return self.run_kernel(inputs, outputs)
        except IntarsiaError as error:
            error.add_note(f"in kernel {self.name}")
            raise
        except Exception as error:
            raise ExecutionError(f"kernel {self.name} failed: {type(error).__name__}: {error}") from error
