"""Pools under clients of every kind at once: every call ends as it should, and is counted once."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import CancelledError, Future
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.fake_kernels import f32, fake, plan_of
from tests.unit.runtime.test_pool import PATIENCE

from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import RunKernel
from intarsia.runtime.pool import Pool
from intarsia.support.errors import DeadlineError, InputError, PoolFullError

pytestmark = pytest.mark.usefixtures("fake_toolchain")

CLIENTS = 6
CALLS = 120


class Tally:
    """Number of calls by how they ended, and what ended wrongly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.ends: dict[str, int] = {}
        self.faults: list[str] = []

    def count(self, number: float, result: Any) -> None:
        """Count a call by its result or error."""
        kind = "done"
        if isinstance(result, (CancelledError, asyncio.CancelledError)):
            kind = "cancelled"
        elif isinstance(result, DeadlineError):
            kind = "late"
        elif isinstance(result, PoolFullError):
            kind = "refused"
        elif isinstance(result, InputError):
            kind = "unfit"
        elif isinstance(result, BaseException) or not (result == 2 * number).all():
            self.faults.append(f"{number}: {result!r}")
        with self._lock:
            self.ends[kind] = self.ends.get(kind, 0) + 1

    def count_future(self, number: float, future: Future[Any]) -> None:
        """Count a call when it has ended."""
        try:
            self.count(number, future.result(PATIENCE))
        except (Exception, CancelledError) as error:  # whatever it is, it is counted
            self.count(number, error)


def rows(number: float, count: int = 1) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.full((count, 4), number, np.float32)


def play_client(pool: Pool, tally: Tally, seed: int) -> None:
    """Send calls in every way; some are cancelled, late, refused or do not fit."""
    draw = Random(seed)
    sent: list[tuple[float, Future[Any]]] = []
    for index in range(CALLS):
        number, way = float(seed * CALLS + index), draw.randrange(6)
        x = rows(number, draw.randint(1, 3))
        try:
            if way == 0:
                tally.count(number, pool(x))
            elif way == 1:
                sent.append((number, pool.submit(x, timeout=draw.choice((0.0, 60.0)))))
            elif way == 2:
                sent.append((number, pool.submit(x, wait=False)))
            elif way == 3:
                sent.append((number, pool.submit(x)))
                sent[-1][1].cancel()
            elif way == 4:
                pool.submit(x.astype(np.int8)).result(PATIENCE)
            else:
                sent.append((number, pool.submit((x,))))
        except (PoolFullError, InputError) as error:
            tally.count(number, error)
        if draw.random() < 0.1:
            time.sleep(0.001)  # so that the pool is idle now and then
    for number, future in sent:
        tally.count_future(number, future)


async def play_tasks(pool: Pool, tally: Tally, seed: int) -> None:
    draw = Random(seed)

    async def send(number: float) -> None:
        try:
            tally.count(number, await pool.run_async(rows(number), timeout=draw.choice((None, 0.0))))
        except (DeadlineError, asyncio.CancelledError) as error:
            tally.count(number, error)

    tasks = []
    for index in range(CALLS):
        tasks.append(asyncio.create_task(send(float(seed * CALLS + index))))
        if draw.random() < 0.3:
            await asyncio.sleep(0)
            draw.choice(tasks).cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("streams", [1, 3])
def test_every_call_ends_once_and_right(streams: int, batch: int) -> None:
    info = f32("a", "n", 4)
    exe = Executable(plan_of([RunKernel(0, (0,), (1,))], [info], [1], [info, info]), [fake("double")])
    tally = Tally()
    with exe, Pool(exe, streams, batch=batch, most_waiting=5) as pool:
        threads = [threading.Thread(target=play_client, args=(pool, tally, seed)) for seed in range(CLIENTS)]
        threads += [
            threading.Thread(target=lambda s=seed: asyncio.run(play_tasks(pool, tally, s)))
            for seed in (CLIENTS, CLIENTS + 1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in threads), "a call never ends"
    # Closing has waited for calls whose tasks have been cancelled meanwhile.
    counts, idle = pool.counts(), len(pool._queue._idle)
    ends = tally.ends
    assert tally.faults == []
    assert (counts.running, counts.waiting, idle) == (0, 0, streams)
    assert counts.refused == ends.get("refused", 0)
    # A task that is cancelled while its call runs or before it sends has no result, and the call is done.
    assert counts.done >= ends["done"]
    assert counts.failed == (ends["unfit"] if batch == 1 else 0)
    total = counts.done + counts.failed + counts.late + counts.cancelled + counts.refused
    assert total + (ends["unfit"] if batch > 1 else 0) <= (CLIENTS + 2) * CALLS
    assert sum(ends.values()) <= (CLIENTS + 2) * CALLS
