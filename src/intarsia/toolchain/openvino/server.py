"""The process that computes a kernel of OpenVINO for another one (`process`)."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

from intarsia.runtime.kernel import Value
from intarsia.support.errors import IntarsiaError
from intarsia.toolchain.openvino.kernel import OpenVinoKernel, load_kernel
from intarsia.toolchain.openvino.process import OpenVinoProcess, OptionsRequest, RunRequest


def serve(number: int) -> None:
    """Compile the source that comes first, then answer each request, until the other end is closed.

    Args:
        number: The socket's file descriptor.
    """
    with Connection(number) as connection:
        try:
            kernel = _compile_first(connection)
            while kernel is not None:
                connection.send(_answer(kernel, connection.recv()))
        except (EOFError, OSError):
            pass  # the other end is closed
    os._exit(0)  # at once: engines have threads that need not be waited for


def _compile_first(connection: Connection) -> OpenVinoKernel | OpenVinoProcess | None:
    """Compile the source that is received first; None, and the error sent, if OpenVINO refuses it."""
    try:
        kernel = load_kernel(connection.recv(), None)
    except IntarsiaError as error:
        connection.send(error)
        return None
    connection.send(None)
    return kernel


def _answer(
    kernel: OpenVinoKernel | OpenVinoProcess, request: RunRequest | OptionsRequest
) -> list[Value] | IntarsiaError | None:
    """Return the results of a call, None where nothing is wrong with the options, or the error."""
    try:
        if isinstance(request, RunRequest):
            return kernel.run(request.inputs, [None] * request.result_count)
        kernel.refuse_unmet_options()
    except IntarsiaError as error:
        return error
    return None
