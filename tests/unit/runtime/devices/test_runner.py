import os
import signal
import threading

import numpy as np
import pytest
from tests.device_plans import HookedKernel, branch_kernels, device_plan, is_right, meeting, two_branches
from tests.fake_kernels import FakeKernel, fake

from intarsia.runtime.devices.progress import Progress
from intarsia.runtime.devices.runner import DeviceRunner
from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import Copy, ExecutionPlan, RunKernel
from intarsia.support.array_address import array_address
from intarsia.support.errors import ExecutionError

X = np.arange(8, dtype=np.float32)
PAIRS = (("cpu:0", "cpu:1"), ("mock:0", "mock:1"), ("cpu:0", "mock:0"))
WAIT = 60


@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_two_branches_on_two_devices(names: tuple[str, str]) -> None:
    plan = two_branches(names)
    assert is_right(plan, 3)
    with Executable(plan, branch_kernels()) as exe:
        for shift in range(3):
            x = X + shift
            found = exe(x)
            np.testing.assert_array_equal(found, 3 * x + 1)
            out = np.empty_like(x)
            exe.run_into([x], [out])
            np.testing.assert_array_equal(out, 3 * x + 1)
            assert not np.may_share_memory(found, x)


def test_large_results_use_the_memory_of_those_that_are_gone() -> None:
    plan = device_plan(PAIRS[0], [0, 0], [RunKernel(0, (0,), (1,), 0)], [1], size=1 << 18)
    x = np.arange(1 << 18, dtype=np.float32)
    kernel = fake("double")
    with Executable(plan, [kernel]) as exe:
        first, second = exe(x), exe(x + 1)
        address, second_address = array_address(first), array_address(second)
        np.testing.assert_array_equal(first, 2 * x)
        del first
        kernel.given.clear()  # it keeps the arrays that it was given
        third = exe(x + 2)
        np.testing.assert_array_equal(second, 2 * x + 2)
        np.testing.assert_array_equal(third, 2 * x + 4)
        assert array_address(third) == address != second_address


@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_branches_run_at_once(names: tuple[str, str]) -> None:
    barrier = threading.Barrier(2, timeout=WAIT)  # one after the other they would wait for ever
    kernels: list[FakeKernel] = [meeting("double", barrier), meeting("increment", barrier), fake("add")]
    with Executable(two_branches(names), kernels) as exe:
        np.testing.assert_array_equal(exe(X), 3 * X + 1)
        timeline = exe.trace(X)
    pairs = [{one.name, other.name} for one, other in timeline.overlaps]
    assert {"kernel0", "kernel1"} in pairs


def test_each_device_has_its_own_thread() -> None:
    seen: dict[str, int] = {}

    def noting(name: str) -> HookedKernel:
        return HookedKernel(name, lambda: seen.update({name: threading.get_ident()}))

    with Executable(two_branches(PAIRS[0]), [noting("double"), noting("increment"), noting("add")]) as exe:
        exe(X)
    assert seen["double"] == seen["add"]
    assert len({seen["double"], seen["increment"], threading.get_ident()}) == 3


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core cannot be divided")
def test_kernels_of_cpu_devices_run_on_disjoint_cores() -> None:
    cores: dict[str, set[int]] = {}

    def noting(name: str) -> HookedKernel:
        return HookedKernel(name, lambda: cores.update({name: os.sched_getaffinity(0)}))

    with Executable(two_branches(PAIRS[0]), [noting("double"), noting("increment"), fake("add")]) as exe:
        exe(X)
    assert cores["double"]
    assert cores["increment"]
    assert not cores["double"] & cores["increment"]


def test_a_source_stays_until_it_is_copied() -> None:
    """Device 0 could use the bytes of slot 1 again at once, while device 1 has not copied it yet."""
    steps = [RunKernel(0, (0,), (1,), 0)]
    steps += [RunKernel(1, (number,), (number + 1,), 0) for number in range(1, 7)]
    plan = device_plan(
        PAIRS[0],
        [0] * 8 + [1, 1],
        [*steps, Copy(1, 8, 1), RunKernel(2, (8,), (9,), 1)],
        [7, 9],
    )
    assert is_right(plan, 3)
    with Executable(plan, [fake("double"), fake("increment"), fake("increment")]) as exe:
        # The copy of 1 is the last step in the plan's order; nothing makes device 0 wait for it.
        for _ in range(50):
            chain, copied = exe(X)
            np.testing.assert_array_equal(chain, 2 * X + 6)
            np.testing.assert_array_equal(copied, 2 * X + 1)


def test_an_error_stops_all_and_is_reported_as_from_one() -> None:
    kernels = [fake("broken"), fake("increment"), fake("add")]
    with Executable(two_branches(PAIRS[1]), kernels, kernel_names=["bad", "good", "last"]) as exe:
        for _ in range(3):
            with pytest.raises(ExecutionError, match="kernel bad failed: ZeroDivisionError"):
                exe(X)
        assert kernels[2].calls == 0


def test_a_device_that_waits_is_told_of_an_error() -> None:
    """Device 0 waits for a value of device 1, whose kernel fails."""
    kernels = [fake("double"), fake("broken"), fake("add")]
    with Executable(two_branches(PAIRS[0]), kernels) as exe:
        with pytest.raises(ExecutionError, match="kernel kernel1 failed"):
            exe(X)
        assert kernels[2].calls == 0


def test_after_an_error_it_runs_again() -> None:
    failures = iter([True, False])

    def fail_once() -> None:
        if next(failures):
            raise ExecutionError("not now")

    with Executable(
        two_branches(PAIRS[0]), [HookedKernel("double", fail_once), *branch_kernels()[1:]]
    ) as exe:
        with pytest.raises(ExecutionError, match="not now"):
            exe(X)
        np.testing.assert_array_equal(exe(X), 3 * X + 1)


def test_an_interrupt_stops_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = threading.Event()
    stop = Progress.stop

    def noting(self: Progress, error: BaseException) -> None:
        stop(self, error)
        stopped.set()

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert stopped.wait(WAIT)

    monkeypatch.setattr(Progress, "stop", noting)
    last = fake("add")
    with Executable(
        two_branches(PAIRS[0]), [HookedKernel("double", interrupt), fake("increment"), last]
    ) as exe:
        with pytest.raises(KeyboardInterrupt):
            exe(X)
        assert last.calls == 0


@pytest.mark.parametrize("names", [("mock:0", "mock:1"), ("cpu:0", "mock:0")], ids="+".join)
def test_a_missing_copy_is_an_error(names: tuple[str, str]) -> None:
    plan = device_plan(names, [0, 0, 1], [RunKernel(0, (0,), (1,), 0), RunKernel(1, (1,), (2,), 1)], [2])
    assert not is_right(plan, 2)
    with (
        Executable(plan, [fake("double"), fake("increment")]) as exe,
        pytest.raises(ExecutionError, match="which is not in its memory"),
    ):
        exe(X)


def test_constants_and_inputs_as_results() -> None:
    plan = device_plan(PAIRS[1], [0, 1, 1], [Copy(0, 1, 1)], [0, 1, 2, 1], constants=[(2, 0)])
    constant = np.full(8, 7, np.float32)
    with Executable(plan, [], [constant]) as exe:
        results = exe(X)
    for found, expected in zip(results, [X, X, constant, X], strict=True):
        np.testing.assert_array_equal(found, expected)
        assert not np.may_share_memory(found, X)
        assert not np.may_share_memory(found, constant)


def test_large_results_are_computed_in_the_callers_buffer() -> None:
    size = 100_000
    plan = device_plan(PAIRS[0], [0, 1, 1], [Copy(0, 1, 1), RunKernel(0, (1,), (2,), 1)], [2], size=size)
    kernel = fake("double")
    x, out = np.ones(size, np.float32), np.empty(size, np.float32)
    with Executable(plan, [kernel]) as exe:
        exe.run_into([x], [out])
        assert kernel.given[-1][1][0] is out
        first, second = exe(x), exe(x)
    assert not np.may_share_memory(first, second)
    np.testing.assert_array_equal(first, out)


def test_values_of_unknown_shape_cross_devices() -> None:
    plan = device_plan(PAIRS[1], [0, 0, 1, 1], [], [3])
    steps = (RunKernel(0, (0,), (1,), 0), Copy(1, 2, 1), RunKernel(1, (2,), (3,), 1))
    main = plan.blocks["main"]
    plan = ExecutionPlan(
        {"main": type(main)(main.params, (), steps, main.results, 4, main.slot_devices)},
        plan.inputs,
        plan.outputs,
        0,
        (None,) * 4,
        plan.devices,
    )
    with Executable(plan, [fake("view"), fake("double")]) as exe:
        np.testing.assert_array_equal(exe(X), 2 * X)


def test_arena_sizes_are_known() -> None:
    plan = two_branches(PAIRS[0])
    with Executable(plan, branch_kernels()) as exe:
        assert isinstance(exe._entries.main.runner, DeviceRunner)
        assert exe._entries.main.runner.arena_sizes == (3 * 64, 2 * 64)


def test_closing_ends_the_threads() -> None:
    before = threading.active_count()
    exe = Executable(two_branches(PAIRS[0]), branch_kernels())
    exe(X)
    assert threading.active_count() == before + 2
    exe.close()
    assert threading.active_count() == before
