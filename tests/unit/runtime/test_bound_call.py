"""Calls on arrays that stay where they are: the results of other calls, from what the arrays contain now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.device_plans import branch_kernels, two_branches
from tests.fake_kernels import f32, fake, plan_of
from tests.forked_children import forked
from tests.partitioned_programs import SIZE, unpartitioned

from intarsia.build import build
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.runtime.plan import Branch, RunKernel, TensorInfo
from intarsia.support.errors import ExecutionError, InputError, UsageError
from intarsia.target import Target
from intarsia.toolchain import usable_toolchains

LARGE = 40_000
USABLE = sorted({toolchain.name for toolchain in usable_toolchains()})


def ones(size: int = 4) -> Array:
    return np.ones(size, np.float32)


def adder(size: int | str = 4) -> Executable:
    """A program for y = (a + b) * 2."""
    a, b, s, y = (f32(name, size) for name in "absy")
    plan = plan_of([RunKernel(0, (0, 1), (2,)), RunKernel(1, (2,), (3,))], [a, b], [3], [a, b, s, y])
    return Executable(plan, [fake("add"), fake("double")], kernel_names=["sum", "twice"])


@pytest.mark.parametrize("size", [4, LARGE])
def test_each_call_reads_the_inputs_anew(size: int) -> None:
    exe, a, b = adder(size), ones(size), ones(size)
    y = np.empty(size, np.float32)
    call = exe.bind([a, b], [y])
    assert call.outputs[0] is y
    for value in (1, 2, 3):
        a[...] = value
        call()
        np.testing.assert_array_equal(y, np.full(size, (value + 1) * 2, np.float32))
        np.testing.assert_array_equal(exe(b, b), np.full(size, 4, np.float32))  # other calls in between


def test_inputs_and_outputs_by_name() -> None:
    a, y = ones(), ones()
    adder().bind({"b": a, "a": a * 2}, {"y0": y})()
    np.testing.assert_array_equal(y, a * 6)


def test_buffers_are_allocated_where_none_are_given() -> None:
    call = adder().bind([ones(), ones()])
    call()
    np.testing.assert_array_equal(call.outputs, [ones() * 4])


def test_kernels_write_into_the_buffers_even_if_they_are_small() -> None:
    kernel = fake("double")
    exe = Executable(plan_of([RunKernel(0, (0,), (1,))], [f32("a", 4)], [1], [f32("a", 4)] * 2), [kernel])
    call = exe.bind([ones()])
    call()
    assert kernel.given[0][1][0] is call.outputs[0]


def test_results_that_are_inputs_constants_or_twice_the_same() -> None:
    a = f32("a", 4)
    for results in ([1, 1], [0, 1, 2]):
        plan = plan_of([RunKernel(0, (0,), (1,))], [a], results, [a, a, a], constants=[(2, 0)])
        exe, x = Executable(plan, [fake("double")], [ones() * 5]), ones()
        call = exe.bind([x])
        for value in (1, 2):
            x[...] = value
            call()
            np.testing.assert_array_equal(call.outputs, exe.run_flat(x))


def test_a_program_with_a_branch() -> None:
    a, c = f32("a", 4), TensorInfo("c", "bool", ())
    branch = Branch(1, (RunKernel(0, (0,), (2,)),), (2,), (), (0,), (3,))
    exe = Executable(plan_of([branch], [a, c], [3], [a, c, a, a]), [fake("double")])
    x, condition = ones(), np.array(True)
    call = exe.bind([x, condition])
    for decision in (True, False):
        condition[...] = decision
        call()
        np.testing.assert_array_equal(call.outputs, [x * 2 if decision else x])


def test_results_of_unknown_shape_need_buffers() -> None:
    a, y = f32("a", "n"), f32("y", -1)
    exe = Executable(plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, y]), [fake("double")])
    with pytest.raises(InputError) as caught:
        exe.bind([ones()])
    assert (
        str(caught.value) == 'output "y0" has no fixed shape\nhelp: give a buffer for each output to bind()'
    )
    out = np.empty(4, np.float32)
    exe.bind([ones()], [out])()
    np.testing.assert_array_equal(out, ones() * 2)
    with pytest.raises(InputError, match=r"has shape \(4,\), but its buffer has shape \(5,\)"):
        exe.bind([ones()], [ones(5)])()


@pytest.mark.parametrize("value", [ones(8)[::2], np.float32(1)], ids=["strided", "scalar"])
def test_inputs_that_would_be_copied_are_refused(value: Any) -> None:
    a = f32("a", *value.shape)
    exe = Executable(plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a]), [fake("double")])
    with pytest.raises(InputError) as caught:
        exe.bind([value])
    assert str(caught.value) == (
        'input "a" cannot be bound: it would be copied\n'
        'help: give a C-contiguous, aligned array: numpy.require(value, "float32", "CA")'
    )


def test_other_owners_of_memory_are_read_through_dlpack() -> None:
    class Tensor:
        def __init__(self, array: Array) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    x = ones()
    call = adder().bind([Tensor(x), x])
    x[...] = 3
    call()
    np.testing.assert_array_equal(call.outputs, [x * 4])


def test_buffers_and_inputs_are_checked_when_they_are_bound() -> None:
    exe, x = adder(), ones()
    with pytest.raises(InputError, match="shares memory with an input"):
        exe.bind([x, x], [x])
    with pytest.raises(InputError, match=r'input "b" has shape \(5,\), expected \(4,\)'):
        exe.bind([x, ones(5)])


def test_a_closed_executable_is_not_called() -> None:
    exe = adder()
    call = exe.bind([ones(), ones()])
    exe.close()
    for use in (call, lambda: exe.bind([ones(), ones()])):
        with pytest.raises(UsageError, match="the executable is closed"):
            use()


def test_errors_name_the_kernel() -> None:
    a = f32("a", 4)
    exe = Executable(plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a]), [fake("broken")])
    with pytest.raises(ExecutionError, match="kernel kernel0 failed: ZeroDivisionError"):
        exe.bind([ones()])()


def test_calls_of_several_threads_take_turns() -> None:
    exe = adder()
    inputs = [ones() * number for number in range(4)]
    calls = [exe.bind([x, x]) for x in inputs]
    failures: list[int] = []

    def work(number: int) -> None:
        for _ in range(200):
            calls[number]()
            if not np.array_equal(calls[number].outputs[0], inputs[number] * 4):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_forked_child_calls_on_its_own_buffers() -> None:
    exe, x = adder(), ones()
    call = exe.bind([x, x])

    def is_right() -> bool:
        x[...] = 2
        call()
        return bool((call.outputs[0] == 8).all())

    assert forked(is_right) == 0
    call()
    np.testing.assert_array_equal(call.outputs, [ones() * 4])


def test_two_devices() -> None:
    x = np.arange(8, dtype=np.float32)
    with Executable(two_branches(("cpu:0", "mock:0")), branch_kernels()) as exe:
        call = exe.bind([x])
        for shift in range(2):
            x += shift
            call()
            np.testing.assert_array_equal(call.outputs, [3 * x + 1])


@pytest.mark.parametrize("toolchain", USABLE)
def test_toolchains_compute_what_they_compute_in_other_calls(toolchain: str) -> None:
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal((SIZE, SIZE)).astype(np.float32) for _ in range(3)]
    x = np.empty_like(arrays[0])
    with build(partition_whole(unpartitioned(), Target.for_toolchain(toolchain))) as exe:
        call = exe.bind([x])
        for array in arrays:
            expected = exe(array)
            x[...] = array
            call()
            np.testing.assert_array_equal(call.outputs[0], expected)


def test_native_binds_all_but_misaligned_buffers() -> None:
    memory = np.zeros(SIZE * SIZE * 4 + 1, np.uint8)
    x = np.ones((SIZE, SIZE), np.float32)
    misaligned = memory[1:].view(np.float32).reshape(SIZE, SIZE)
    with build(partition_whole(unpartitioned(), Target.for_toolchain("native"))) as exe:
        (kernel,) = exe.kernels
        bind: Callable[[Sequence[Array], Sequence[Array]], object] = kernel.bind  # type: ignore[attr-defined]
        assert bind([x], [np.empty_like(x)]) is not None
        assert bind([x], [misaligned]) is None
