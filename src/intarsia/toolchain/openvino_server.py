"""The process that computes a kernel of OpenVINO for another one (`openvino_process`)."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

from intarsia.runtime.kernel import Kernel, Value
from intarsia.support.errors import IntarsiaError
from intarsia.toolchain.openvino_kernel import load_kernel


def serve(number: int) -> None:
    """Compile the source that comes first, then compute each list of inputs, until the other end is closed.

    Args:
        number: The socket's file descriptor.
    """
    with Connection(number) as connection:
        kernel: Kernel | None = None
        while True:
            try:
                request = connection.recv()
            except (EOFError, OSError):
                break
            answer: list[Value] | IntarsiaError | None = None
            try:
                if kernel is None:
                    kernel = load_kernel(request, None)
                else:
                    inputs, result_count = request
                    answer = kernel.run(inputs, [None] * result_count)
            except IntarsiaError as error:
                answer = error
            connection.send(answer)
    os._exit(0)  # at once: engines have threads that nobody needs to wait for
