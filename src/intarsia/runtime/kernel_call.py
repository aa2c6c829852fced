"""Call a kernel, with its name in every error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from intarsia.runtime.kernel import (
    AddressSeries,
    AllocatingKernel,
    Array,
    BindableKernel,
    Kernel,
    RepeatableKernel,
    Value,
)
from intarsia.support.errors import ExecutionError, IntarsiaError

_Result = TypeVar("_Result")


class NamedKernel:
    """A kernel with the name that errors and profiles show."""

    __slots__ = ("kernel", "name", "run_kernel")

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.kernel = kernel
        self.name = name
        self.run_kernel = kernel.run

    def bind(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> Callable[[], object]:
        """Return a function that runs the kernel on arrays that stay where they are.

        It raises the errors that `run` raises.
        """
        bound = self.kernel.bind(inputs, outputs) if isinstance(self.kernel, BindableKernel) else None
        if bound is None:
            return partial(self.run, inputs, outputs)
        return partial(self.call, bound)

    @property
    def has_new_results(self) -> bool:
        """Whether each result that the kernel allocates is memory of its own."""
        return isinstance(self.kernel, AllocatingKernel) and self.kernel.has_new_results

    @property
    def is_watched(self) -> bool:
        """Whether each run is timed or recorded."""
        return self.run_kernel != self.kernel.run

    def repeat(self, count: int, inputs: Sequence[AddressSeries], outputs: Sequence[AddressSeries]) -> None:
        """Run the kernel many times in one call, as `RepeatableKernel.repeat`.

        Raises:
            ExecutionError: It failed.
        """
        assert isinstance(self.kernel, RepeatableKernel), "the caller has looked"
        self.call(self.kernel.repeat, count, inputs, outputs)

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """Run the kernel.

        Raises:
            ExecutionError: It failed.
        """
        return self.call(self.run_kernel, inputs, outputs)

    def call(self, run: Callable[..., _Result], *args: object) -> _Result:
        """Call a function that runs the kernel, with the kernel's name in every error.

        Raises:
            ExecutionError: It failed.
        """
        try:
            return run(*args)
        except IntarsiaError as error:
            error.add_note(f"in kernel {self.name}")
            raise
        except Exception as error:
            raise ExecutionError(f"kernel {self.name} failed: {type(error).__name__}: {error}") from error
