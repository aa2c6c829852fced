import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.fake_kernels import FUNCTIONS, f32, fake, plan_of

from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.runtime.plan import ExecutionPlan, RunKernel, TensorInfo
from intarsia.runtime.plan_check import plan_complaint
from intarsia.support.array_address import array_address

NAMES = ("add", "double", "view", "same", "increment")
SIZE = 20


@st.composite
def plans(draw: st.DrawFn) -> ExecutionPlan:
    """Straight-line plans over two inputs and a constant; some slots are of unknown shape."""
    slots: list[TensorInfo | None] = [f32("a", SIZE), f32("b", SIZE), f32("c", SIZE)]
    steps = []
    for _ in range(draw(st.integers(0, 12))):
        kernel = draw(st.integers(0, len(NAMES) - 1))
        arity = 2 if NAMES[kernel] == "add" else 1
        inputs = tuple(draw(st.integers(0, len(slots) - 1)) for _ in range(arity))
        steps.append(RunKernel(kernel, inputs, (len(slots),)))
        slots.append(draw(st.sampled_from([f32("s", SIZE), f32("s", -1), f32("s", "n"), None])))
    results = draw(st.lists(st.integers(0, len(slots) - 1), min_size=1, max_size=5))
    inputs_of_plan = [f32("a", SIZE), f32("b", SIZE)]
    return plan_of(steps, inputs_of_plan, results, slots, constants=[(2, 0)])


def naive(plan: ExecutionPlan, inputs: list[Array], constant: Array) -> list[Array]:
    values: dict[int, Any] = {0: inputs[0].copy(), 1: inputs[1].copy(), 2: constant.copy()}
    for step in plan.blocks["main"].steps:
        assert isinstance(step, RunKernel)
        values[step.outputs[0]] = np.array(
            FUNCTIONS[NAMES[step.kernel]](*(values[slot] for slot in step.inputs))
        )
    return [values[slot] for slot in plan.blocks["main"].results]


@given(plans())
def test_random_plans_compute_what_a_naive_evaluator_computes(plan: ExecutionPlan) -> None:
    constant = np.full(SIZE, 3, np.float32)
    assert plan_complaint(plan, len(NAMES), 1) == ""
    exe = Executable(plan, [fake(name) for name in NAMES], [constant])
    earlier: list[tuple[list[Any], list[Array]]] = []
    for number in range(3):
        inputs = [np.arange(SIZE, dtype=np.float32) + number, np.full(SIZE, number, np.float32)]
        found = exe.run_flat(*inputs)
        earlier.append((found, naive(plan, inputs, constant)))
        buffers = [np.empty(SIZE, np.float32) for _ in found]
        exe.run_into(inputs, buffers)
        np.testing.assert_array_equal(buffers, earlier[-1][1])
        assert not any(np.shares_memory(result, array) for result in buffers for array in [*inputs, constant])
    for found, expected in earlier:
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(constant, np.full(SIZE, 3))


def test_intermediates_are_the_same_objects_on_every_call() -> None:
    a = f32("a", 4)
    kernels = [fake("double"), fake("increment"), fake("double")]
    steps = [RunKernel(number, (number,), (number + 1,)) for number in range(3)]
    exe = Executable(plan_of(steps, [a], [3], [a] * 4), kernels)
    for _ in range(3):
        exe(np.ones(4, np.float32))
    for before, kernel in itertools.pairwise(kernels):
        written = [outputs[0] for _, outputs in before.given]
        read = [inputs[0] for inputs, _ in kernel.given]
        assert all(array is written[0] for array in [*written, *read])


def test_a_long_chain_reuses_two_buffers() -> None:
    a = f32("a", 4)
    kernel = fake("increment")
    steps = [RunKernel(0, (number,), (number + 1,)) for number in range(100)]
    exe = Executable(plan_of(steps, [a], [100], [a] * 101), [kernel])
    np.testing.assert_array_equal(exe(np.zeros(4, np.float32)), np.full(4, 100))
    addresses = {outputs[0].ctypes.data for _, outputs in kernel.given if outputs[0] is not None}
    assert len(addresses) == 2
    assert all(address % 64 == 0 for address in addresses)


def test_a_view_of_a_buffer_outlives_the_buffer() -> None:
    a, unknown = f32("a", 4), f32("u", -1)
    steps = [
        RunKernel(0, (0,), (1,)),  # 1 = 2a, in the arena
        RunKernel(1, (1,), (2,)),  # 2 = view of 1, whose buffer is free from here on
        RunKernel(0, (0,), (3,)),
        RunKernel(0, (3,), (4,)),  # takes the place of 1
        RunKernel(2, (2, 4), (5,)),
    ]
    exe = Executable(
        plan_of(steps, [a], [5], [a, a, unknown, a, a, a]), [fake(n) for n in ("double", "view", "add")]
    )
    np.testing.assert_array_equal(exe(np.ones(4, np.float32)), np.full(4, 6))


def test_empty_and_scalar_values_have_buffers_too() -> None:
    for shape in ((), (0,), (2, 0, 3)):
        a = f32("a", *shape)
        exe = Executable(
            plan_of([RunKernel(0, (0,), (1,)), RunKernel(0, (1,), (2,))], [a], [2], [a] * 3), [fake("double")]
        )
        assert exe(np.ones(shape, np.float32)).shape == shape


def test_large_results_that_are_gone_give_their_memory_to_later_ones() -> None:
    a = f32("a", 1 << 18)
    kernel = fake("double")
    exe = Executable(plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a] * 2), [kernel])
    kept = exe(np.ones(1 << 18, np.float32))
    addresses = set()
    for number in range(6):
        result = exe(np.full(1 << 18, number, np.float32))
        assert not np.shares_memory(result, kept)
        np.testing.assert_array_equal(result, np.full(1 << 18, 2 * number))
        addresses.add(array_address(result))
        kernel.given.clear()
        del result
    np.testing.assert_array_equal(kept, np.full(1 << 18, 2))
    assert len(addresses) == 1
