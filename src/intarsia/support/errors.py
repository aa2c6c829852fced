"""Every error that a user of Intarsia can meet.

    IntarsiaError                     exit code of the command line
    ├── UsageError                    2
    │   ├── InputError                    an input array with a wrong name, type or shape
    │   ├── MissingToolchainError         a toolchain that is not installed, or broken
    │   ├── OutputError                   a result that cannot be written
    │   ├── PlanError                     a damaged plan, or for another program (collage.placement.plan)
    │   ├── IllegalStepError              a step that loops do not allow (native.loop_state.illegal_step)
    │   ├── PassTextError                 passes as text, with a mistake (transform.pass_syntax.source_text)
    │   ├── PassOrderError                passes in an order that cannot work (transform.pass_order)
    │   ├── ReplayError                   a trace that cannot be replayed (transform.replay)
    │   └── NothingTriedError             a search that ended before its first trial (tune.strategy.trials)
    ├── ModelError                    3   the model
    │   ├── InvalidModelError             not a valid model (truncated, cyclic, ill-typed)
    │   │   └── DeviceConflictError           a value on two devices (passes.devices.device_domains)
    │   ├── UnsupportedModelError         valid, but beyond what Intarsia handles
    │   │   ├── UnhandledFeatureError         beyond what a pass handles (transform.program_feature)
    │   │   └── LeftToPyTorchError            a graph that runs in eager mode (torch_compile.fallback)
    │   ├── ProgramTextError              program text that does not parse
    │   └── VerifyError                   a program that breaks the rules of the language
    ├── CompileError                  3   a toolchain refuses a function
    │   └── NotCoveredError               no compute rule for a call (native.te.operators.compute_call)
    ├── ArtifactError                 3   an artifact that is damaged or does not fit this machine
    │   ├── UnknownRelocationError        object code that only LLVM can load (object_code.relocation)
    │   └── ForbiddenSymbolError          object code with a forbidden call (object_code.process_symbols)
    ├── ExecutionError                1   a kernel failed at run time
    │   ├── ConnectionLostError           an executor is out of reach (measure.testbed.transport)
    │   └── GpuLostError                  a kernel has faulted (runtime.cuda.driver)
    ├── CallRefusedError              1   a call of a pool that does not run
    │   ├── PoolFullError                 too many calls wait already
    │   ├── DeadlineError                 its time was up before it could begin
    │   └── PoolClosedError               the pool is closed
    ├── VerificationError             4   a result differs from the reference
    ├── TooSlowError                  5   slower than the user required
    ├── DatabaseError                 6   measurements that cannot be read or kept
    ├── StoppedError                130   the user has ended a run, which has kept what it has
    ├── HostBusyError                 1   another process keeps the host to itself (measure.host_lock)
    ├── PoolBrokenError               1   no worker process can be started (measure.worker_pool.failure)
    └── TaskFailedError               1   a task of a worker process (measure.worker_pool.failure)
        ├── TaskRaisedError               it raised an exception
        ├── WorkerCrashedError            its process ended
        ├── TaskTimedOutError             it reached its time limit
        ├── TaskOutOfMemoryError          it reached its memory limit
        └── TaskStoppedError              its pool was stopped

An error with a module in brackets is defined there, beside the code that raises it.
The message states the problem, the actual value and the expected one; `help` states the remedy. The layers
that an error passes through add its location with `add_note` (operator, pass, node of the model).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(eq=False)
class IntarsiaError(Exception):
    """Base of all errors meant for people.

    Attributes:
        problem: One sentence with the problem, the actual value and the expected one.
        help: Advice to the user, or the empty string.
    """

    problem: str
    help: str = field(default="", kw_only=True)
    exit_code: ClassVar[int] = 1

    def __str__(self) -> str:
        """The message: problem, notes, then the help line."""
        lines = [self.problem, *(f"  {note}" for note in getattr(self, "__notes__", ()))]
        if self.help:
            lines.append(f"help: {self.help}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by fields, so that errors cross process borders (measuring workers)."""
        return (_rebuild, (type(self), self.__dict__))


def causes(error: BaseException, *, with_contexts: bool = False) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that and so on, each once.

    Args:
        error: The error.
        with_contexts: Whether an error without a cause leads on to the error during whose handling it was
            raised.
    """
    seen: set[int] = set()
    current: BaseException | None = error
    # Python accepts chains that lead back to themselves: `raise error from error` makes one.
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (current.__context__ if with_contexts else None)


def _rebuild(cls: type[IntarsiaError], state: dict[str, object]) -> IntarsiaError:
    error = cls.__new__(cls)
    error.__dict__.update(state)
    return error


@dataclass(eq=False)
class UsageError(IntarsiaError):
    """The request itself cannot be carried out."""

    exit_code: ClassVar[int] = 2


@dataclass(eq=False)
class InputError(UsageError):
    """An input array does not fit the program: wrong name, count, element type or shape."""


@dataclass(eq=False)
class MissingToolchainError(UsageError):
    """A requested toolchain is unknown, not installed, or broken on this machine."""


@dataclass(eq=False)
class OutputError(UsageError):
    """A result cannot be written: read-only folder, full disk, existing file."""


@dataclass(eq=False)
class ModelError(IntarsiaError):
    """The model cannot be used."""

    exit_code: ClassVar[int] = 3


@dataclass(eq=False)
class InvalidModelError(ModelError):
    """Not a valid model: damaged file, unknown operator, cyclic graph, ill-typed call."""


@dataclass(eq=False)
class UnsupportedModelError(ModelError):
    """A valid model that uses something Intarsia does not handle."""


@dataclass(eq=False)
class ProgramTextError(ModelError):
    """Program text that does not parse, with line and column."""


@dataclass(eq=False)
class VerifyError(ModelError):
    """A program that breaks the rules of the language; the message is the annotated program."""


@dataclass(eq=False)
class CompileError(IntarsiaError):
    """A toolchain cannot compile a function."""

    exit_code: ClassVar[int] = 3


@dataclass(eq=False)
class ArtifactError(IntarsiaError):
    """A saved artifact that is damaged, of another version, or made for another machine."""

    exit_code: ClassVar[int] = 3


@dataclass(eq=False)
class ExecutionError(IntarsiaError):
    """A kernel failed while running."""


@dataclass(eq=False)
class CallRefusedError(IntarsiaError):
    """A call of a pool that does not run; nothing of it was computed."""


@dataclass(eq=False)
class PoolFullError(CallRefusedError):
    """So many calls wait that another one is refused."""


@dataclass(eq=False)
class DeadlineError(CallRefusedError):
    """The time within which a call was to begin is up."""


@dataclass(eq=False)
class PoolClosedError(CallRefusedError):
    """A call of a pool that is closed, or that was closed while the call waited."""


@dataclass(eq=False)
class VerificationError(IntarsiaError):
    """A result differs from the reference by more than the tolerance."""

    exit_code: ClassVar[int] = 4


@dataclass(eq=False)
class TooSlowError(IntarsiaError):
    """A measured latency is above what the user required."""

    exit_code: ClassVar[int] = 5


@dataclass(eq=False)
class DatabaseError(IntarsiaError):
    """A database of measurements that is missing, damaged, locked, of another version, or out of reach."""

    exit_code: ClassVar[int] = 6


@dataclass(eq=False)
class StoppedError(IntarsiaError):
    """The user has stopped a run; its results so far are kept."""

    exit_code: ClassVar[int] = 130
