"""What an executable lets go of: after a call, and when it is closed."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
from tests.fake_kernels import FakeKernel, f32, fake, plan_of

from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array, Kernel, Value
from intarsia.runtime.plan import RunKernel
from intarsia.runtime.self_test import SelfTest
from intarsia.support.errors import ExecutionError, UsageError

X = np.arange(4, dtype=np.float32)


def doubling(*kernels: Kernel) -> Executable:
    """A program that runs the first of these kernels on four numbers."""
    a = f32("a", 4)
    plan = plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a])
    return Executable(plan, kernels, [np.ones(4)], self_test=SelfTest((X,), (X * 2,)))


def test_closing_closes_the_kernels_once() -> None:
    kernel = fake("double")
    with doubling(kernel) as exe:
        exe(X)
    exe.close()
    assert kernel.closed == 1


def test_a_closed_executable_tells_what_it_is_and_refuses_everything_else(tmp_path: Path) -> None:
    exe = doubling(fake("double"))
    exe.close()
    assert repr(exe) == "Executable((a: float32 (4,)) -> (y0: float32 (4,)), 1 kernel)"
    assert (len(exe.inputs), len(exe.outputs), exe.kernel_names) == (1, 1, ("kernel0",))
    uses: dict[str, Callable[[], object]] = {
        "call": lambda: exe(X),
        "flat": lambda: exe.run_flat(X),
        "into": lambda: exe.run_into([X], [X.copy()]),
        "bind": lambda: exe.bind([X]),
        "profile": lambda: exe.profile(X),
        "self test": exe.self_test,
        "saved test": lambda: exe.saved_test,
        "save": lambda: exe.save(tmp_path / "m"),
        "kernels": lambda: exe.kernels,
        "program": lambda: exe.program,
        "with": exe.__enter__,
    }
    for what, use in uses.items():
        with pytest.raises(UsageError) as caught:
            use()
        expected = "the executable is closed\nhelp: build it or load it again"
        assert str(caught.value) == expected, what
    assert list(tmp_path.iterdir()) == []


def test_closing_lets_go_of_kernels_buffers_and_constants() -> None:
    exe = doubling(fake("double"))
    assert exe.provenance.program == ""
    exe(X)
    runner: Any = exe._entries.main.runner
    gone: list[Callable[[], object]] = [
        ref(exe.kernels[0]),
        ref(exe.contents.constants[0]),
        ref(runner._buffers.arena),
        ref(runner),
    ]
    del runner
    exe.close()
    assert [part() for part in gone] == [None] * 4


def test_what_is_dropped_is_gone_without_a_search_for_cycles() -> None:
    exe = doubling(fake("double"))
    exe(X)
    kept = ref(exe), ref(exe.kernels[0])
    gc.disable()
    try:
        del exe
        assert [item() for item in kept] == [None, None]
    finally:
        gc.enable()


def test_all_kernels_are_closed_even_if_one_fails() -> None:
    class Failing(FakeKernel):
        def close(self) -> None:
            raise RuntimeError("no")

    first, second = fake("double"), fake("double")
    exe = doubling(first, Failing(first.source), second)
    with pytest.raises(RuntimeError, match="no"):
        exe.close()
    assert (first.closed, second.closed) == (1, 1)
    exe.close()


def test_closing_waits_for_a_call_that_is_under_way() -> None:
    started, go_on = threading.Event(), threading.Event()

    class Slow(FakeKernel):
        def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
            started.set()
            assert go_on.wait(30)
            assert not self.closed
            return super().run(inputs, outputs)

    exe = doubling(Slow(fake("double").source))
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(exe, X)
        assert started.wait(30)
        closing = pool.submit(exe.close)
        go_on.set()
        np.testing.assert_array_equal(call.result(30), X * 2)
        closing.result(30)


@pytest.mark.parametrize("fails", [False, True])
def test_arrays_of_a_call_are_not_kept(fails: bool) -> None:
    exe = doubling(fake("broken" if fails else "double"))
    x = X.copy()
    if fails:
        with pytest.raises(ExecutionError):
            exe(x)
    else:
        exe(x)
    runner: Any = exe._entries.main.runner
    arguments = [argument for step in runner._steps for argument in step[1]]
    assert not any(argument is x for argument in arguments)


def test_memory_that_the_machine_does_not_give() -> None:
    a, huge = f32("a", 4), f32("b", 2**50)
    steps = [RunKernel(0, (0,), (1,)), RunKernel(1, (1,), (2,))]
    kernels = [fake("double"), fake("double")]
    help_line = "help: close other programs, or fix smaller input shapes"
    with pytest.raises(ExecutionError) as caught:
        Executable(plan_of(steps, [a], [2], [a, huge, a]), kernels)
    assert str(caught.value) == (
        "the program needs 4,294,967,296 MiB for its intermediate values, which this machine does not give\n"
        + help_line
    )
    exe = Executable(plan_of(steps[:1], [a], [1], [a, huge]), kernels[:1])
    with pytest.raises(ExecutionError) as caught:
        exe(X)
    assert str(caught.value) == (
        "the program needs 4,294,967,296 MiB for its results, which this machine does not give\n" + help_line
    )
