from __future__ import annotations

import os
import pickle
import signal

import pytest

from intarsia.measure.worker_pool import TaskRaisedError, WorkerCrashedError
from intarsia.measure.worker_pool.failure import crashed, describe_end


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (int(signal.SIGSEGV), "was killed by SIGSEGV"),
        (int(signal.SIGABRT) | 0x80, "was killed by SIGABRT"),  # with a core dump
        (signal.SIGRTMIN + 1, "was killed by signal 35"),
        (3 << 8, "exited with code 3"),
        (0, "exited with code 0"),
    ],
)
def test_a_wait_status_is_told(status: int, text: str) -> None:
    assert describe_end(status) == text
    failure = crashed("it ended", status)
    expected = os.waitstatus_to_exitcode(status)
    assert (failure.signal, failure.exit_status) == ((-expected, None) if expected < 0 else (None, expected))


def test_an_unknown_end_has_neither_signal_nor_status() -> None:
    assert (crashed("it ended").signal, crashed("it ended").exit_status) == (None, None)


def test_failures_travel_to_other_processes() -> None:
    raised = TaskRaisedError("p", type_name="ValueError", text="t", traceback="tb", output="o")
    for failure in (raised, WorkerCrashedError("p", signal=11)):
        copy = pickle.loads(pickle.dumps(failure))
        assert type(copy) is type(failure)
        assert vars(copy) == vars(failure)
