"""OpenVINO in a process of its own: what a forked child computes with.

OpenVINO keeps locks and threads in its libraries. A child that is forked while the parent computes, or soon
after it, may find a lock held by a thread that it does not have: compiling there hangs now and then. So a
child of a process that has used OpenVINO leaves the kernels to the parent and starts a new interpreter, which
compiles the source and receives the arrays of each call over a socket. That costs a copy of inputs and
results; a program that was not loaded before the fork needs none of it.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.support.environment import copy_environment
from intarsia.support.errors import CompileError, ExecutionError, IntarsiaError, UsageError
from intarsia.support.forks import reset_in_children
from intarsia.toolchain.delivery import deliver_all

_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from intarsia.toolchain.openvino.server import serve; serve(int(sys.argv[1]))"
)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Inputs for the compiled model in the other process.

    Attributes:
        inputs: Values of the parameters, in order.
        result_count: Number of results.
    """

    inputs: tuple[Value, ...]
    result_count: int


@dataclass(frozen=True, slots=True)
class OptionsRequest:
    """Request to compare the compiled model with the options of its target; None or an error answers."""


class OpenVinoProcess:
    """A kernel of OpenVINO that a new process computes; the process ends with the kernel or with this one.

    Raises:
        CompileError: OpenVINO refuses the source, or the process does not start.
    """

    def __init__(self, source: KernelSource) -> None:
        self.source = source
        self._connection: Connection | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_of_parent = False
        self._start()
        reset_in_children(self)

    def reset_in_child(self) -> None:
        """Forget the process: it answers the one that started it, and the next run starts another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = self._process = None
            self._is_of_parent = True

    def blob(self) -> bytes | None:
        """None: what is compiled stays in the other process."""
        return None

    def refuse_unmet_options(self) -> None:
        """As `OpenVinoKernel.refuse_unmet_options`; the other process compares.

        Raises:
            CompileError: OpenVINO does otherwise than an option says.
            UsageError: The kernel is closed.
        """
        self._start_if_of_parent()
        self._answer(OptionsRequest(), CompileError)

    def close(self) -> None:
        """End the process."""
        self._is_of_parent = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.wait()  # it ends as soon as its connection does
            self._process = None

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`."""
        self._start_if_of_parent()
        values = self._answer(RunRequest(tuple(inputs), len(outputs)), ExecutionError)
        return deliver_all(values, outputs)

    def _start_if_of_parent(self) -> None:
        if self._connection is None:
            if not self._is_of_parent:
                raise UsageError("the kernel is closed")
            self._start()

    def _start(self) -> None:
        self._is_of_parent = False
        here, there = socket.socketpair()
        with here, there:
            command = [sys.executable, "-c", _START, str(there.fileno()), *sys.path]
            try:
                self._process = subprocess.Popen(  # noqa: S603 -- the same Python with our own code
                    command,
                    pass_fds=[there.fileno()],
                    stdin=subprocess.DEVNULL,
                    env=copy_environment(),
                )
            except OSError as error:
                raise CompileError(f"no process for openvino can be started: {error.strerror}") from error
            self._connection = Connection(here.detach())
        try:
            self._answer(self.source, CompileError)
        except IntarsiaError:
            self.close()
            raise

    def _answer(self, request: KernelSource | RunRequest | OptionsRequest, kind: type[IntarsiaError]) -> Any:
        assert self._connection is not None
        try:
            self._connection.send(request)
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            self.close()
            raise kind("openvino's process has ended") from error
        if isinstance(answer, IntarsiaError):
            raise answer
        return answer
