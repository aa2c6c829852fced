"""Dispatch of candidates to a simulated cluster of up to 32 Dask workers, with planned measuring times.

Scheduler, workers and tuner run in this process, but speak by TCP, as on machines of their own. Everything
is that of a run of `tune --cluster` but what a worker does with a candidate: it waits for a planned time, and
reports it. So the rows show what the tuner and the scheduler cost: the efficiency is the planned time over
the time of all workers, of the whole run, and between its first and last eighth, as workers start one after
the other and wait for the slowest candidate. Results go to an SQLite database with leases, as in a run.

CPU is the time of tuner, scheduler and all workers for a candidate: on machines of their own, the rate of a
cluster is limited by the tuner's part of it. The last columns count what goes from the tuner to the
scheduler: the workload with its weights once, which Dask then distributes, and what a candidate adds.

    python -m benchmarks.cluster_dispatch [--workers 1 2 4 8 16 32] [--each 16] [--mean 2.0]

It takes about 40 s for each number of workers.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from distributed import LocalCluster
from tests.tcp_proxy import TcpProxy, tcp_proxy

from intarsia.ir import Constant, Function, IRModule, TensorType, Var
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Candidate, MeasureInput, Workload
from intarsia.measure.measure_progress import MeasureProgress
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed import remote
from intarsia.measure.testbed.dask_cluster import connect
from intarsia.measure.testbed.station import MeasuredThere, SentCandidate, SentParcel
from intarsia.measure.testbed.station_session import StationSettings
from intarsia.op import call
from intarsia.target import Target
from intarsia.toolchain.this_host import this_host

SPREAD = 0.5
"""Largest deviation of a planned time from the mean, as a share of it."""
CLUSTER: dict[str, Any] = {
    "processes": False, "protocol": "tcp", "threads_per_worker": 1,
    "dashboard_address": None, "memory_limit": None,
}  # fmt: skip
TARGET = Target("cpu -toolchain=reference")


def measure_planned(parcel: SentParcel, settings: StationSettings, sent: SentCandidate) -> MeasuredThere:
    """Wait as long as the candidate takes; a task of a worker."""
    del parcel, settings
    seconds = sent.candidate.trace
    assert isinstance(seconds, float)
    time.sleep(seconds)
    return MeasuredThere(Outcome(costs=(seconds,)), seconds)


def workload(megabytes: int) -> Workload:
    """A program with weights of a size, whose result is given: nothing is computed."""
    size = megabytes * (1 << 18)
    weights = np.arange(size, dtype=np.float32)
    x = Var("x", checked_type=TensorType.of(weights))
    module = IRModule.from_expr(Function((x,), call("Add", x, Constant(weights))))
    zeros = np.zeros(size, np.float32)
    return Workload(module, "planned", {"x": zeros}, expected=(weights,), is_checked=False)


def note_moment(moments: list[float], _progress: MeasureProgress) -> None:
    """Append the time of a result."""
    moments.append(time.perf_counter())


def dispatch(measurer: Measurer, inputs: Sequence[MeasureInput], proxy: TcpProxy) -> tuple[float, float, int]:
    """Measure candidates, and return the seconds, those of the CPU, and the bytes to the scheduler."""
    begun, cpu, sent = time.perf_counter(), time.process_time(), proxy.sent
    results = measurer.measure(inputs)
    assert all(result is not None and result.is_ok for result in results)
    return time.perf_counter() - begun, time.process_time() - cpu, proxy.sent - sent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--each", type=int, default=16, help="candidates for each worker")
    parser.add_argument("--weights", type=int, default=4, help="size of the weights in MiB")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mean", type=float, default=2.0, help="mean seconds of a candidate")
    options = parser.parse_args()
    shortest, longest = (options.mean * factor for factor in (1 - SPREAD, 1 + SPREAD))
    remote.measure_there = measure_planned  # type: ignore[attr-defined]  # a fake
    print(
        f"{'workers':>7} {'candidates/s':>12} {'efficiency':>10} {'workload, bytes':>15} {'a candidate':>12}"
    )
    for workers in options.workers:
        draw = random.Random(options.seed + workers)
        seconds = [draw.uniform(shortest, longest) for _ in range(options.each * workers)]
        work = workload(options.weights)
        first, *inputs = [MeasureInput(work, TARGET, Candidate("planned", item)) for item in seconds]
        with (
            LocalCluster(n_workers=workers, **CLUSTER) as cluster,
            tcp_proxy(int(cluster.scheduler_address.rsplit(":", 1)[1])) as proxy,
            tempfile.TemporaryDirectory() as folder,
            Database.open(Path(folder) / "measurements.db") as database,
            connect(proxy.address, this_host(), timeout_s=60) as testbed,
        ):
            measurer = Measurer(testbed, database)
            *_, once = dispatch(measurer, [first], proxy)
            moments: list[float] = []
            measurer.on_progress = partial(note_moment, moments)
            wall, cpu, added = dispatch(measurer, inputs, proxy)
        efficiency = sum(seconds[1:]) / (wall * workers)
        eighth = len(inputs) // 8
        middle = moments[-eighth] - moments[eighth]
        steady = options.mean * (len(moments) - 2 * eighth) / (middle * workers)
        rate, cpu_ms, each = len(inputs) / wall, 1e3 * cpu / len(inputs), added / len(inputs)
        shares = f"{rate:12.1f} {efficiency:10.2f} {steady:9.2f} {cpu_ms:8.1f}"
        print(f"{workers:7} {shares} {once:15,} {each:12,.0f}", flush=True)


if __name__ == "__main__":
    main()
