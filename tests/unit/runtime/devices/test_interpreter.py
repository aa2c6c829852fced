import threading

import numpy as np
import pytest
from tests.device_plans import HookedKernel, device_plan, is_right
from tests.fake_kernels import fake

from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import Branch, Copy, ExecutionPlan, Invoke, PlanBlock, RunKernel

X = np.arange(1, 9, dtype=np.float32)
PAIRS = (("mock:0", "mock:1"), ("cpu:0", "cpu:1"), ("cpu:0", "mock:0"))


def branching(names: tuple[str, str]) -> ExecutionPlan:
    """2x on the second device if some x is positive, else x + 1 on the first one, copied."""
    positive = RunKernel(0, (0,), (1,), 0)
    branch = Branch(
        1,
        (Copy(0, 2, 1), RunKernel(1, (2,), (3,), 1)),
        (3,),
        (RunKernel(2, (0,), (4,)), Copy(4, 5, 1)),
        (5,),
        (6,),
    )
    return device_plan(names, [0, 0, 1, 1, 0, 1, 1], [positive, branch], [6])


@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_branches_whose_parts_are_on_devices(names: tuple[str, str]) -> None:
    plan = branching(names)
    assert is_right(plan, 3)
    with Executable(plan, [fake("positive"), fake("double"), fake("increment")]) as exe:
        np.testing.assert_array_equal(exe(X), 2 * X)
        np.testing.assert_array_equal(exe(-X), 1 - X)
        out = np.empty_like(X)
        exe.run_into([X], [out])
        np.testing.assert_array_equal(out, 2 * X)
        names_taken = [event.name for event in exe.trace(-X).events]
    assert names_taken == ["kernel0", "kernel2", f"copy from {names[0]}"]


@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_a_recursive_block_that_changes_devices(names: tuple[str, str]) -> None:
    """f(x) on device 0 = x if no x is positive, else f(x - 1), taken on device 1."""
    steps = (Copy(0, 2, 1), RunKernel(1, (2,), (3,), 1), Copy(3, 4, 0), Invoke("f", (4,), (5,)))
    branch = Branch(1, steps, (5,), (), (0,), (6,))
    called = PlanBlock((0,), (), (RunKernel(0, (0,), (1,)), branch), (6,), 7, (0, 0, 1, 1, 0, 0, 0))
    plan = device_plan(names, [0, 0], [Invoke("f", (0,), (1,))], [1], blocks={"f": called})
    assert is_right(plan, 2)
    with Executable(plan, [fake("positive"), fake("decrement")]) as exe:
        np.testing.assert_array_equal(exe(X), X - 8)


def test_constants_of_blocks_and_results_belong_to_the_caller() -> None:
    called = PlanBlock((), ((0, 0),), (), (0,), 1, (1,))
    plan = device_plan(
        PAIRS[0], [0, 1, 1], [Invoke("f", (), (1,)), Invoke("f", (), (2,))], [1, 2, 0], blocks={"f": called}
    )
    constant = np.full(8, 7, np.float32)
    with Executable(plan, [], [constant]) as exe:
        one, other, x = exe(X)
        one[:] = other[:] = x[:] = 0
        np.testing.assert_array_equal(exe(X)[0], constant)
    np.testing.assert_array_equal(constant, np.full(8, 7))


def test_kernels_run_in_the_threads_of_their_devices() -> None:
    seen: dict[str, int] = {}

    def noting(name: str) -> HookedKernel:
        return HookedKernel(name, lambda: seen.update({name: threading.get_ident()}))

    with Executable(branching(PAIRS[1]), [noting("positive"), noting("double"), fake("increment")]) as exe:
        exe(X)
    assert len({*seen.values(), threading.get_ident()}) == 3
