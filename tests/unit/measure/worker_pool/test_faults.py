"""The fault table: of each kind, 20 bad tasks among 80 good ones lose only themselves."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.unit.measure.worker_pool import bad_tasks
from tests.unit.measure.worker_pool.live_processes import is_alive, nothing_left_behind

from intarsia.measure.worker_pool import (
    Task,
    TaskFailedError,
    TaskOutOfMemoryError,
    TaskRaisedError,
    TaskTimedOutError,
    WorkerCrashedError,
    WorkerPool,
)

pytestmark = pytest.mark.processes

LIMIT_BYTES = 256 * bad_tasks.MEBIBYTE


@dataclass(frozen=True)
class Fault:
    """What a bad task does, and how it must be classified."""

    function: Callable[[], object]
    kind: type[TaskFailedError]
    signal: int | None = None
    exit_status: int | None = None
    timeout_s: float | None = 60.0
    memory_bytes: int | None = None


FAULTS = (
    Fault(bad_tasks.raise_error, TaskRaisedError),
    Fault(bad_tasks.segfault, WorkerCrashedError, signal=signal.SIGSEGV),
    Fault(bad_tasks.abort, WorkerCrashedError, signal=signal.SIGABRT),
    Fault(bad_tasks.exit_softly, WorkerCrashedError, exit_status=3),
    Fault(bad_tasks.exit_hard, WorkerCrashedError, exit_status=4),
    Fault(bad_tasks.loop, TaskTimedOutError, timeout_s=0.3),
    Fault(bad_tasks.loop_whatever_comes, TaskTimedOutError, timeout_s=0.3),
    Fault(bad_tasks.stop_itself, TaskTimedOutError, timeout_s=0.3),
    Fault(bad_tasks.allocate_at_once, TaskOutOfMemoryError, memory_bytes=LIMIT_BYTES),
    Fault(bad_tasks.allocate_bit_by_bit, TaskOutOfMemoryError, memory_bytes=LIMIT_BYTES),
    Fault(bad_tasks.close_files, WorkerCrashedError),
    Fault(bad_tasks.write_everywhere, WorkerCrashedError),
    Fault(bad_tasks.kill_own_group, WorkerCrashedError, signal=signal.SIGKILL),
    Fault(bad_tasks.kill_parent, WorkerCrashedError),
    Fault(bad_tasks.flood, TaskRaisedError),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.function.__name__)
def test_bad_tasks_lose_only_themselves(fault: Fault) -> None:
    with nothing_left_behind():
        bad = Task(fault.function, timeout_s=fault.timeout_s, memory_bytes=fault.memory_bytes)
        with WorkerPool(4, timeout_s=60.0) as pool:
            futures = [
                pool.submit_task(bad) if number % 5 == 0 else pool.submit(bad_tasks.good, number)
                for number in range(100)
            ]
            outcomes = [future.exception() or future.result() for future in futures]
            workers = pool.worker_pids()
        for number, outcome in enumerate(outcomes):
            if number % 5:
                assert outcome == number * number
                continue
            assert type(outcome) is fault.kind
            if isinstance(outcome, WorkerCrashedError) and (fault.signal or fault.exit_status):
                assert (outcome.signal, outcome.exit_status) == (fault.signal, fault.exit_status)
        assert not any(map(is_alive, workers))
