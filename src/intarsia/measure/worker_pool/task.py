"""A call with its limits, and the same call under way."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from intarsia.support.errors import UsageError

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Task(Generic[Result]):
    """A function call to be run in a worker.

    Attributes:
        function: A function of a module (not of the main script, not a lambda): workers find it by name.
        arguments: Positional arguments; they travel pickled, so large arrays belong into files.
        keywords: Keyword arguments.
        timeout_s: Seconds it may run, or None for no limit.
        memory_bytes: Memory it may add to its process and all its descendants, or None for no limit.
    """

    function: Callable[..., Result]
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    timeout_s: float | None = None
    memory_bytes: int | None = None

    def pickled(self) -> bytes:
        """The call as bytes.

        Raises:
            UsageError: The function cannot be found by workers, or an argument cannot be pickled.
        """
        if getattr(self.function, "__module__", None) == "__main__":
            name = getattr(self.function, "__qualname__", repr(self.function))
            raise UsageError(
                f"{name} is defined in the main script, which workers do not run",
                help="define it in a module and import it from there",
            )
        try:
            return pickle.dumps((self.function, self.arguments, dict(self.keywords)), protocol=5)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UsageError(
                f"a task cannot be sent to a worker: {error}",
                help="tasks call functions of modules by name, with arguments that can be pickled",
            ) from error


@dataclass(eq=False)
class Job:
    """A task that a pool has accepted.

    Attributes:
        number: Counts the jobs of a pool.
        call: The pickled call.
        future: Future of the result.
        timeout_s: Time limit of the task in seconds, or None.
        memory_bytes: Memory limit of the task in bytes, or None.
    """

    number: int
    call: bytes
    future: Future[Any]
    timeout_s: float | None
    memory_bytes: int | None
