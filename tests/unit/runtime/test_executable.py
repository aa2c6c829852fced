import threading
from collections.abc import Sequence

import numpy as np
import pytest
from tests.fake_kernels import f32, fake, plan_of

from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.plan import Branch, ExecutionPlan, PlanBlock, RunKernel, TensorInfo
from intarsia.runtime.provenance import Provenance
from intarsia.runtime.self_test import SelfTest
from intarsia.support.errors import ExecutionError, InputError, UsageError, VerificationError

X = np.arange(4, dtype=np.float32)
LARGE = 40_000


def adder(size: int = 4) -> Executable:
    """A program for y = (a + b) * 2."""
    a, b, s, y = (f32(name, size) for name in "absy")
    plan = plan_of([RunKernel(0, (0, 1), (2,)), RunKernel(1, (2,), (3,))], [a, b], [3], [a, b, s, y])
    return Executable(plan, [fake("add"), fake("double")], kernel_names=["sum", "twice"])


def test_call_by_position_and_by_name() -> None:
    exe = adder()
    for found in (exe(X, X + 1), exe(a=X, b=X + 1), exe(X, b=X + 1)):
        np.testing.assert_array_equal(found, (2 * X + 1) * 2)


@pytest.mark.parametrize("size", [4, LARGE])
def test_results_belong_to_the_caller(size: int) -> None:
    exe, x = adder(size), np.arange(size, dtype=np.float32)
    first = exe(x, x)
    kept = first.copy()
    exe(x + 1, x)
    np.testing.assert_array_equal(first, kept)
    first[...] = 7
    np.testing.assert_array_equal(exe(x, x), kept)


def test_nothing_of_the_caller_is_kept_after_the_call() -> None:
    import weakref

    class Mine(np.ndarray[tuple[int, ...], np.dtype[np.float32]]):
        """Arrays cannot be referred to weakly, objects of a subclass can."""

    exe = Executable(plan_of([], [f32("a", 4)], [0], [f32("a", 4)]), [])
    mine = X.copy().view(Mine)
    gone = weakref.ref(mine)
    exe(mine)
    del mine
    assert gone() is None


def test_results_that_are_inputs_constants_or_twice_the_same_are_copies() -> None:
    a = f32("a", 4)
    constant = X + 5
    plan = plan_of([RunKernel(0, (0,), (2,))], [a], [0, 1, 2, 2], [a, a, a], constants=[(1, 0)])
    exe = Executable(plan, [fake("double")], [constant])
    results = exe(X)
    np.testing.assert_array_equal(results, [X, X + 5, X * 2, X * 2])
    arrays = [X, constant, *results]
    for i, one in enumerate(arrays):
        assert not any(np.shares_memory(one, other) for other in arrays[i + 1 :])


def test_results_nest_as_the_program_says() -> None:
    a = f32("a", 4)
    block = PlanBlock((0,), (), (RunKernel(0, (0,), (1,)),), (1, 0), 2)
    plan = ExecutionPlan({"main": block}, (a,), (f32("y", 4), f32("z", 4)), ((1,), 0, ()), (a, a))
    (inner,), outer, nothing = Executable(plan, [fake("double")])(X)
    np.testing.assert_array_equal(inner, X)
    np.testing.assert_array_equal(outer, X * 2)
    assert nothing == ()


@pytest.mark.parametrize("size", [4, LARGE])
def test_run_into_writes_to_the_callers_buffers(size: int) -> None:
    exe, x = adder(size), np.arange(size, dtype=np.float32)
    y = np.empty(size, np.float32)
    exe.run_into([x, x], [y])
    np.testing.assert_array_equal(y, x * 4)
    exe.run_into({"a": x, "b": x + 1}, {"y0": y})
    np.testing.assert_array_equal(y, x * 4 + 2)
    np.testing.assert_array_equal(exe(x, x), x * 4)


def test_run_into_gives_large_buffers_to_the_kernel() -> None:
    a = f32("a", LARGE)
    kernel = fake("double")
    exe = Executable(plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a]), [kernel])
    y = np.empty(LARGE, np.float32)
    exe.run_into([np.zeros(LARGE, np.float32)], [y])
    assert kernel.given[0][1][0] is y


def test_run_into_of_one_result_twice_and_of_an_input() -> None:
    a = f32("a", LARGE)
    exe = Executable(plan_of([RunKernel(0, (0,), (1,))], [a], [1, 1, 0], [a, a]), [fake("double")])
    x = np.ones(LARGE, np.float32)
    buffers = [np.empty(LARGE, np.float32) for _ in range(3)]
    exe.run_into([x], buffers)
    assert [float(buffer[-1]) for buffer in buffers] == [2, 2, 1]


def refused(outputs: Sequence[Array], x: Array = X) -> str:
    with pytest.raises(InputError) as caught:
        adder().run_into([x, x], outputs)
    return str(caught.value)


def test_run_into_refuses_buffers_that_do_not_fit() -> None:
    x = np.zeros(4, np.float32)
    frozen = np.zeros(4, np.float32)
    frozen.flags.writeable = False
    assert refused([]) == "0 output buffers were given, expected 1\nhelp: the outputs are y0"
    assert refused([np.zeros(4)]) == 'output "y0" has element type float64, expected float32'
    assert refused([np.zeros(5, np.float32)]) == 'output "y0" has shape (5,), expected (4,)'
    assert refused([x], x) == 'output "y0" shares memory with an input or another output'
    assert refused([frozen]) == 'the buffer of output "y0" is not a writeable C-contiguous array'
    with pytest.raises(InputError, match='there is no output "z"'):
        adder().run_into([X, X], {"z": x})


def test_run_into_refuses_a_buffer_of_another_shape_than_a_dynamic_result() -> None:
    a, y = f32("a", "n"), f32("y", -1)
    exe = Executable(plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, y]), [fake("double")])
    with pytest.raises(InputError) as caught:
        exe.run_into([X], [np.zeros(5, np.float32)])
    assert str(caught.value) == 'output "y0" has shape (4,), but its buffer has shape (5,)'


def test_errors_name_the_kernel() -> None:
    a = f32("a", 4)
    exe = Executable(
        plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a]), [fake("broken")], kernel_names=["k"]
    )
    with pytest.raises(ExecutionError) as caught:
        exe(X)
    assert str(caught.value) == "kernel k failed: ZeroDivisionError: integer division or modulo by zero"


def test_calls_from_several_threads_do_not_mix() -> None:
    exe = adder(1000)
    wrong: list[int] = []

    def work(number: int) -> None:
        x = np.full(1000, number, np.float32)
        wrong.extend(1 for _ in range(50) if not np.array_equal(exe(x, x), x * 4))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_profile_shows_where_the_time_goes() -> None:
    times = iter(range(0, 10**6, 1000))  # every look at the clock takes a microsecond
    profile = adder().profile(X, X, repeats=5, warmup=0, clock=lambda: next(times))
    rows = [(row.kernel.name, row.toolchain, row.calls, round(1e6 * row.seconds)) for row in profile.rows]
    assert rows == [("sum", "fake", 1, 1), ("twice", "fake", 1, 1)]
    seconds = (profile.seconds, profile.overhead_seconds, profile.end_to_end_seconds)
    assert [round(1e6 * item) for item in seconds] == [5, 3, 1]
    assert profile.repeats == 5


def test_profile_refuses_no_repeats() -> None:
    with pytest.raises(UsageError, match="repeats is 0, expected 1 or more"):
        adder().profile(X, X, repeats=0)


def test_self_test_gives_the_largest_error() -> None:
    a = f32("a", 4)
    plan = plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a])
    test = SelfTest((X,), (X * 2 + np.array([0, 0, 0.5, 0], np.float32),))
    assert Executable(plan, [fake("double")], self_test=test).self_test() == 0.5
    with pytest.raises(UsageError, match="the executable has no self test"):
        Executable(plan, [fake("double")]).self_test()


@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [
        ([np.nan], [np.nan], 0.0),
        ([np.inf], [np.inf], 0.0),
        ([np.nan], [1.0], np.inf),
        ([-np.inf], [np.inf], np.inf),
    ],
)
def test_self_test_of_special_values(found: list[float], expected: list[float], error: float) -> None:
    from intarsia.runtime.self_test import largest_error

    assert largest_error([np.array(found, np.float32)], [np.array(expected, np.float32)]) == error


def test_self_test_of_another_shape() -> None:
    from intarsia.runtime.self_test import largest_error

    with pytest.raises(VerificationError, match="output 0 of the self test is float32 "):
        largest_error([X], [X[:2]])


def test_what_it_tells_about_itself() -> None:
    asked = []

    def provenance() -> Provenance:
        asked.append(1)
        return Provenance(program="def @main")

    a = f32("a", 4)
    plan = plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a])
    exe = Executable(plan, [fake("double")], provenance=provenance)
    assert repr(exe) == "Executable((a: float32 (4,)) -> (y0: float32 (4,)), 1 kernel)"
    assert (exe.inputs, exe.outputs) == ((a,), (f32("y0", 4),))
    assert not asked
    assert (exe.program, exe.program, len(asked)) == ("def @main", "def @main", 1)


def test_a_program_with_a_branch_runs_through_the_same_entries() -> None:
    a, c = f32("a", 4), TensorInfo("c", "bool", ())
    branch = Branch(1, (RunKernel(0, (0,), (2,)),), (2,), (), (0,), (3,))
    exe = Executable(plan_of([branch], [a, c], [3], [a, c, a, a]), [fake("double")])
    y = np.empty(4, np.float32)
    exe.run_into([X, np.array(True)], [y])
    np.testing.assert_array_equal(y, X * 2)
    found = exe(X, np.array(False))
    np.testing.assert_array_equal(found, X)
    assert not np.shares_memory(found, X)
    assert exe.profile(X, np.array(True), repeats=2).rows[0].calls == 1


def test_outputs_that_a_kernel_allocates_as_lists_pass_through() -> None:
    class ListKernel:
        source = fake("double").source

        def blob(self) -> bytes | None:
            return None

        def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
            return [[inputs[0], None]]

    a = f32("a", 4)
    exe = Executable(plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, None]), [ListKernel()])
    found, nothing = exe(X)
    np.testing.assert_array_equal(found, X)
    assert nothing is None
    assert not np.shares_memory(found, X)
