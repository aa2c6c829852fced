"""Kernels in the interpreter: barriers order threads, and races are reported."""

import numpy as np
import pytest
from tests.tir_checks import Array, parsed
from tests.unit.ir.test_kernel_verify import HEAD, REVERSED_ROWS

from intarsia.native.tir import interpret
from intarsia.support.errors import ExecutionError

X = np.arange(32, dtype=np.float32).reshape(4, 8)


def run(text: str) -> Array:
    y = np.zeros((4, 8), np.float32)
    interpret(parsed(text), [X.copy(), y])
    return y


def test_threads_read_what_others_wrote_before_the_barrier() -> None:
    np.testing.assert_array_equal(run(REVERSED_ROWS), X[:, ::-1])


def test_a_missing_barrier_is_a_race() -> None:
    with pytest.raises(
        ExecutionError, match=r"threads . of block 0 and . of block 0 race for element . of row"
    ):
        run(REVERSED_ROWS.replace("barrier;", ""))


def test_a_missing_barrier_before_memory_is_reused_is_a_race() -> None:
    text = REVERSED_ROWS.replace(
        "row[t] = x[b, t];", "for i in 2 { row[t] = x[b, t]; barrier; y[b, t] = row[7 - t]; }"
    )
    with pytest.raises(ExecutionError, match="race for element"):
        run(text)
    repaired = text.replace("row[7 - t]; }", "row[7 - t]; barrier; }")
    np.testing.assert_array_equal(run(repaired), X[:, ::-1])


def test_blocks_that_write_one_element_race() -> None:
    with pytest.raises(ExecutionError, match="block 0 and 0 of block 1 race for element 0 of y"):
        run(f"{HEAD} for block b in 4 {{ for thread t in 8 {{ y[0, t] = x[b, t]; }} }} }}")


def test_kernels_follow_each_other() -> None:
    first = "for block b in 4 { for thread t in 8 { y[b, t] = x[b, t]; } }"
    second = "for block b in 2 { for thread t in 8 { y[b, t] = y[b, t] + y[b + 2, t]; } }"
    expected = np.concatenate([X[:2] + X[2:], X[2:]])
    np.testing.assert_array_equal(run(f"{HEAD} {first} {second} }}"), expected)


def test_deep_loops_in_a_thread_wait_at_barriers() -> None:
    loops = "".join(f"for i{n} in {2 if n == 13 else 1} {{ " for n in range(15))
    body = "row[t] = x[b, t]; barrier; y[b, t] = row[7 - t]; barrier;"
    text = REVERSED_ROWS.replace("row[t] = x[b, t];", loops + body + "}" * 15)
    np.testing.assert_array_equal(run(text), X[:, ::-1])
