"""Processes that run one task each at a time, within limits, and that are killed and replaced one by one.

    pool            WorkerPool, the `concurrent.futures.Executor` that the other rooms use
    task            a call with its limits
    failure         how a task can fail: raised, crashed, timed out, out of memory, stopped
    dispatcher      the one thread of the pool: assigns jobs to workers, and delivers results
    slot            one place of the pool, seen from the parent: a keeper and its worker of the moment
    keeper_process  the keeper as the parent starts and commands it
    verdict         what became of a job, from what its worker said and how it ended
    keeper          between parent and worker: starts it, ends it with all its descendants, reports
    worker          the process that runs tasks
    messages        messages between parent, keeper and worker
    frames          messages over sockets that may break off anywhere
    process_tree    descendants, memory and memory limits of processes, from Linux

The package handles functions of modules and arguments that can be pickled; it imports no compiler.
Why it is not a library: docs/decisions/0008-worker-pool.md.
"""

from intarsia.measure.worker_pool.failure import (
    PoolBrokenError,
    TaskFailedError,
    TaskOutOfMemoryError,
    TaskRaisedError,
    TaskStoppedError,
    TaskTimedOutError,
    WorkerCrashedError,
)
from intarsia.measure.worker_pool.pool import WorkerPool
from intarsia.measure.worker_pool.task import Task

__all__ = [
    "PoolBrokenError",
    "Task",
    "TaskFailedError",
    "TaskOutOfMemoryError",
    "TaskRaisedError",
    "TaskStoppedError",
    "TaskTimedOutError",
    "WorkerCrashedError",
    "WorkerPool",
]
