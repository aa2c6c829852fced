"""A child that is forked while threads of its parent use toolchains can use them too."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.partitioned_programs import SIZE, unpartitioned

from intarsia.build import build
from intarsia.passes import partition_whole
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.toolchain import usable_toolchains

CHILDREN, PATIENCE_S = 6, 30.0
TOOLCHAINS = sorted(toolchain.name for toolchain in usable_toolchains())


def executable_of(toolchain: str, threads: int) -> Executable:
    target = Target.for_toolchain(toolchain)
    return build(partition_whole(unpartitioned(), target.with_options(threads=threads)))


def forked(is_right: Callable[[], bool]) -> int | None:
    """Call in a forked child; returns its exit status, 0 if it is right, or None if it hangs."""
    process = os.fork()
    if process == 0:
        try:
            os._exit(0 if is_right() else 1)
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


@contextmanager
def threads_that_call(executable: Executable, given: Array) -> Iterator[None]:
    """Two threads that call an executable as long as the block takes."""
    is_over = threading.Event()

    def call_until_over() -> None:
        while not is_over.is_set():
            executable(given)

    callers = [threading.Thread(target=call_until_over, daemon=True) for _ in range(2)]
    for caller in callers:
        caller.start()
    try:
        yield
    finally:
        is_over.set()
        for caller in callers:
            caller.join()


def random_input() -> Array:
    return np.random.default_rng(1).standard_normal((SIZE, SIZE)).astype(np.float32)


def is_close(result: Array, expected: Array) -> bool:
    return np.allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_forked_children_get_the_result_while_threads_call(toolchain: str, threads: int) -> None:
    given, executable = random_input(), executable_of(toolchain, threads)
    expected = executable(given)
    with threads_that_call(executable, given):
        statuses = [forked(lambda: is_close(executable(given), expected)) for _ in range(CHILDREN)]
    assert statuses == [0] * CHILDREN
    assert is_close(executable(given), expected)


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_forked_children_build_while_threads_call(toolchain: str) -> None:
    given, executable = random_input(), executable_of(toolchain, 1)
    expected = executable(given)
    with threads_that_call(executable, given):
        statuses = [forked(lambda: is_close(executable_of(toolchain, 1)(given), expected)) for _ in range(2)]
    assert statuses == [0, 0]


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_forked_children_save_and_load_while_threads_call(toolchain: str, tmp_path: Path) -> None:
    given, executable, of_parent = random_input(), executable_of(toolchain, 1), tmp_path / "parent.intarsia"
    expected = executable(given)
    executable.save(of_parent)

    def loads_both() -> bool:
        of_child = tmp_path / "child.intarsia"
        with executable_of(toolchain, 1) as built:
            built.save(of_child)
        return all(is_close(load(place)(given), expected) for place in (of_parent, of_child))

    with threads_that_call(executable, given):
        status = forked(loads_both)
    assert status == 0


def outcome_of_build(target: Target) -> str:
    """Return "built", or the message of the error."""
    try:
        build(partition_whole(unpartitioned(), target)).close()
    except CompileError as error:
        return str(error)
    return "built"


@pytest.mark.skipif("openvino" not in TOOLCHAINS, reason="openvino is not installed")
@pytest.mark.parametrize("option", ["core_type=efficient", "core_type=any", "inference_precision=float16"])
def test_options_are_refused_in_a_child_as_in_its_parent(option: str) -> None:
    target = Target(f"cpu -toolchain=openvino -threads=1 -{option}")
    expected = outcome_of_build(target)
    assert forked(lambda: outcome_of_build(target) == expected) == 0
