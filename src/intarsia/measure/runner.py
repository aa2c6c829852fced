"""Running built candidates in worker processes, one at a time on the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from intarsia.measure.candidate_task import Outcome, run_candidate
from intarsia.measure.host_lock import exclusive_host
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.task_outcome import task_outcome
from intarsia.measure.timing import TimingPolicy
from intarsia.measure.worker_pool import Task, WorkerPool
from intarsia.measure.workload_folder import WorkloadFolder

QUICK = TimingPolicy(warmup_seconds=0.02, repeats=10, min_repeat_seconds=0.005, max_seconds=2.0)
"""How a candidate is timed at first; what is near the best is repeated."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Checks and times built candidates, each in a worker of its own.

    Runs are exclusive: for as long as one runs, no other run of any process of the user does.

    Attributes:
        pool: Where they run.
        policy: How they are timed.
        timeout_s: Seconds that one run may take, with loading and checking.
        memory_bytes: Memory that one run may add, or None.
        on_wait: Told once, with whom is waited for, if another process is timing.
    """

    pool: WorkerPool
    policy: TimingPolicy = QUICK
    timeout_s: float = 60.0
    memory_bytes: int | None = None
    on_wait: Callable[[str], None] | None = field(default=None, compare=False)

    def run(self, workload: WorkloadFolder, artifact: Path, policy: TimingPolicy | None = None) -> Outcome:
        """Run a candidate; waits until the host is free, and for the result.

        Args:
            workload: Inputs and reference result.
            artifact: What `Builder` has built.
            policy: How to time it, if not as usual.
        """
        arguments = (workload.path, artifact, policy or self.policy)
        task = Task(run_candidate, arguments, timeout_s=self.timeout_s, memory_bytes=self.memory_bytes)
        with exclusive_host(on_wait=self.on_wait):
            return task_outcome(self.pool.submit_task(task), MeasureError.RUN_TIMEOUT)
