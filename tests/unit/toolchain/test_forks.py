"""A child that is forked while threads of its parent call an executable can call it too."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from tests.partitioned_programs import SIZE, unpartitioned

from intarsia.build import build
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.target import Target
from intarsia.toolchain import usable_toolchains

CHILDREN, PATIENCE_S = 6, 30.0
TOOLCHAINS = sorted(toolchain.name for toolchain in usable_toolchains())


def executable_of(toolchain: str, threads: int) -> Executable:
    target = Target.for_toolchain(toolchain)
    return build(partition_whole(unpartitioned(), target.with_options(threads=threads)))


def forked_call(executable: Executable, given: Array, expected: Array) -> int | None:
    """Call in a forked child; returns its exit status, 0 for the right result, or None if it hangs."""
    process = os.fork()
    if process == 0:
        try:
            result = executable(given)
            os._exit(0 if np.allclose(result, expected, rtol=1e-4, atol=1e-5) else 1)
        finally:
            os._exit(2)
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_forked_children_get_the_result_while_threads_call(toolchain: str, threads: int) -> None:
    given = np.random.default_rng(1).standard_normal((SIZE, SIZE)).astype(np.float32)
    executable, is_over = executable_of(toolchain, threads), threading.Event()
    expected = executable(given)

    def call_until_over() -> None:
        while not is_over.is_set():
            executable(given)

    callers = [threading.Thread(target=call_until_over, daemon=True) for _ in range(2)]
    for caller in callers:
        caller.start()
    try:
        statuses = [forked_call(executable, given, expected) for _ in range(CHILDREN)]
    finally:
        is_over.set()
        for caller in callers:
            caller.join()
    assert statuses == [0] * CHILDREN
    np.testing.assert_allclose(executable(given), expected, rtol=1e-4, atol=1e-5)
