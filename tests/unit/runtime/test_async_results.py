"""Results of threads for tasks of asyncio: wake-ups of the loop, errors, cancelling, loops that are gone."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from concurrent.futures import Future
from typing import Any

import pytest

from intarsia.runtime.async_results import AsyncResults

COUNT = 50


def in_thread(run: Any) -> None:
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def test_results_that_come_together_wake_the_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> tuple[list[int], int]:
        results, futures = AsyncResults(), [Future[int]() for _ in range(COUNT)]
        tasks = [asyncio.create_task(results.wait_for(future)) for future in futures]
        await asyncio.sleep(0)
        loop, wakes = asyncio.get_running_loop(), 0
        wake = loop.call_soon_threadsafe

        def counted(*args: Any, **named: Any) -> Any:
            nonlocal wakes
            wakes += 1
            return wake(*args, **named)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)

        def end_all() -> None:
            for number, future in enumerate(futures):
                future.set_result(number)

        in_thread(end_all)
        return list(await asyncio.gather(*tasks)), wakes

    assert asyncio.run(play()) == (list(range(COUNT)), 1)


def test_results_of_many_threads_all_arrive() -> None:
    async def play() -> list[int]:
        results, futures = AsyncResults(), [Future[int]() for _ in range(COUNT * 8)]

        def end(start: int) -> None:
            for number in range(start, len(futures), 8):
                futures[number].set_result(number)

        tasks = [asyncio.create_task(results.wait_for(future)) for future in futures]
        threads = [threading.Thread(target=end, args=(start,)) for start in range(8)]
        for thread in threads:
            thread.start()
        try:
            return list(await asyncio.wait_for(asyncio.gather(*tasks), 60))
        finally:
            for thread in threads:
                thread.join()

    assert asyncio.run(play()) == list(range(COUNT * 8))


def test_errors_and_results_that_are_there_already() -> None:
    async def play() -> list[Any]:
        results, futures = AsyncResults(), [Future[int]() for _ in range(4)]
        futures[0].set_result(1)
        futures[1].set_exception(ValueError("no"))
        futures[2].set_exception(StopIteration(3))
        assert futures[3].cancel()
        waiting = map(results.wait_for, futures)
        return await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 60)

    one, *errors = asyncio.run(play())
    assert one == 1
    assert [type(error) for error in errors] == [ValueError, RuntimeError, asyncio.CancelledError]


def test_cancelling_a_task_cancels_its_future_alone() -> None:
    async def play() -> tuple[bool, int]:
        results, dropped, kept = AsyncResults(), Future[int](), Future[int]()
        tasks = [asyncio.create_task(results.wait_for(future)) for future in (dropped, kept)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.sleep(0)
        in_thread(lambda: kept.set_result(2))
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        return dropped.cancelled(), await tasks[1]

    assert asyncio.run(play()) == (True, 2)


def test_a_closed_loop_is_forgotten_with_its_results() -> None:
    results, calls = AsyncResults(), [Future[int]()]
    calls[0].set_running_or_notify_cancel()  # it runs: cancelling the task does not end it

    async def leave() -> weakref.ref[asyncio.AbstractEventLoop]:
        task = asyncio.create_task(results.wait_for(calls[0]))
        await asyncio.sleep(0)
        task.cancel()
        return weakref.ref(asyncio.get_running_loop())

    async def wait() -> int:
        future: Future[int] = Future()
        future.set_result(1)
        return int(await results.wait_for(future))

    gone = asyncio.run(leave())
    calls.pop().set_result(3)  # too late
    assert asyncio.run(wait()) == 1
    gc.collect()
    assert gone() is None
