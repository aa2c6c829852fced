import numpy as np
import pytest
from tests.fake_kernels import f32, fake, plan_of

from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import Branch, ExecutionPlan, Invoke, PlanBlock, RunKernel, Step, TensorInfo
from intarsia.support.errors import ExecutionError

A, C = f32("a", 4), TensorInfo("c", "bool", ())
X = np.arange(4, dtype=np.float32)


def test_only_the_taken_branch_runs() -> None:
    true, false = fake("double"), fake("increment")
    branch = Branch(1, (RunKernel(0, (0,), (2,)),), (2,), (RunKernel(1, (0,), (3,)),), (3,), (4,))
    exe = Executable(plan_of([branch], [A, C], [4], [A, C, A, A, A]), [true, false])
    np.testing.assert_array_equal(exe(X, np.array(True)), X * 2)
    assert (true.calls, false.calls) == (1, 0)
    np.testing.assert_array_equal(exe(X, np.array(False)), X + 1)
    assert (true.calls, false.calls) == (1, 1)


def recursive() -> ExecutionPlan:
    """down(n, x) = if n > 0 then down(n - 1, x) + 1 else x; main = down."""
    inner = (RunKernel(1, (0,), (3,)), Invoke("down", (3, 1), (4,)), RunKernel(2, (4,), (5,)))
    steps: tuple[Step, ...] = (RunKernel(0, (0,), (2,)), Branch(2, inner, (5,), (), (1,), (6,)))
    down = PlanBlock((0, 1), (), steps, (6,), 7)
    main = PlanBlock((0, 1), (), (Invoke("down", (0, 1), (2,)),), (2,), 3)
    number = f32("n")
    return ExecutionPlan({"main": main, "down": down}, (number, A), (f32("y", 4),), 0, (number, A, A))


def test_recursion_of_any_depth(length: int) -> None:
    kernels = [fake("positive"), fake("decrement"), fake("increment")]
    exe = Executable(recursive(), kernels)
    np.testing.assert_array_equal(exe(np.array(length, np.float32), X), X + length)


@pytest.mark.slow
def test_branches_nested_deeper_than_pythons_stack() -> None:
    steps: tuple[Step, ...] = ()
    result = 0
    depth = 20_000
    for level in range(depth):
        slot = 2 + level
        steps = (Branch(1, (*steps,), (result,), (), (0,), (slot,)),)
        result = slot
    exe = Executable(plan_of(steps, [A, C], [result], [A, C, *[A] * depth]), [])
    np.testing.assert_array_equal(exe(X, np.array(True)), X)


def test_two_results_may_be_swapped_by_a_call() -> None:
    swap = PlanBlock((0, 1), (), (), (1, 0), 2)
    plan = plan_of([Invoke("swap", (0, 1), (2, 3))], [A, f32("b", 4)], [2, 3], [A] * 4, blocks={"swap": swap})
    found = Executable(plan, [])(X, X + 1)
    np.testing.assert_array_equal(found, [X + 1, X])


def test_constants_of_a_called_block() -> None:
    block = PlanBlock((0,), ((1, 0),), (RunKernel(0, (0, 1), (2,)),), (2, 1), 3)
    plan = plan_of([Invoke("f", (0,), (1, 2))], [A], [1, 2], [A] * 3, blocks={"f": block})
    constant = X + 10
    total, returned = Executable(plan, [fake("add")], [constant])(X)
    np.testing.assert_array_equal(total, X * 2 + 10)
    assert not np.shares_memory(returned, constant)


def test_dead_values_are_let_go() -> None:
    alive: list[int] = []

    class Counted(np.ndarray[tuple[int, ...], np.dtype[np.float32]]):
        def __del__(self) -> None:
            alive.append(-1)

    from tests.fake_kernels import FUNCTIONS

    def counted(a: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Counted:
        alive.append(1)
        peak.append(sum(alive))
        return (np.asarray(a) + 1).view(Counted)

    peak: list[int] = []
    FUNCTIONS["counted"] = counted
    try:
        kernel = fake("counted")
    finally:
        del FUNCTIONS["counted"]
    kernel.run = lambda inputs, outputs: [counted(inputs[0])]  # type: ignore[method-assign,arg-type]  # keeps nothing
    steps: list[Step] = [RunKernel(0, (slot,), (slot + 1,)) for slot in range(2, 52)]
    steps = [Branch(1, (), (0,), (), (0,), (2,)), *steps]
    np.testing.assert_array_equal(
        Executable(plan_of(steps, [A, C], [52], [A, C, *[None] * 51]), [kernel])(X, np.array(True)), X + 50
    )
    assert max(peak) == 2


def test_a_condition_needs_one_element() -> None:
    flags = TensorInfo("c", "bool", (2,))
    branch = Branch(1, (), (0,), (), (0,), (2,))
    exe = Executable(plan_of([branch], [A, flags], [2], [A, flags, A]), [])
    with pytest.raises(ExecutionError) as caught:
        exe(X, np.array([True, False]))
    assert str(caught.value) == "the condition of a branch has shape (2,), expected one element"
