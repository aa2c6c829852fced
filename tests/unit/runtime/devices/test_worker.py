import os
import threading
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection

import pytest

from intarsia.runtime.devices.core_groups import allowed_cores
from intarsia.runtime.devices.worker import Worker


def test_all_is_done_in_one_thread_in_order() -> None:
    worker = Worker("w")
    seen: list[tuple[int, int]] = []

    def note(number: int) -> None:
        seen.append((number, threading.get_ident()))

    futures = [worker.submit(partial(note, number)) for number in range(9)]
    for future in futures:
        future.result()
    worker.close()
    assert [number for number, _ in seen] == list(range(9))
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] != threading.get_ident()


def test_an_exception_is_that_of_the_call() -> None:
    worker = Worker("w")
    with pytest.raises(ZeroDivisionError):
        worker.call(lambda: 1 // 0)
    assert worker.call(lambda: 5) == 5
    worker.close()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not pin threads")
def test_the_thread_and_those_it_starts_keep_to_their_cores() -> None:
    core = allowed_cores()[-1]
    worker = Worker("w", (core,))
    inherited: list[set[int]] = []

    def start_another() -> set[int]:
        thread = threading.Thread(target=lambda: inherited.append(os.sched_getaffinity(0)))
        thread.start()
        thread.join()
        return os.sched_getaffinity(0)

    before = os.sched_getaffinity(0)
    assert worker.call(start_another) == {core}
    assert inherited == [{core}]
    assert os.sched_getaffinity(0) == before
    worker.close()


def test_cores_that_are_not_there_do_no_harm() -> None:
    worker = Worker("w", (10**6,))
    assert worker.call(lambda: 1) == 1
    worker.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_forked_child_begins_with_a_new_thread() -> None:
    worker = Worker("w")
    assert worker.call(os.getpid) == os.getpid()
    ours, theirs = get_context("fork").Pipe()
    child = get_context("fork").Process(target=_work_in_child, args=(worker, theirs))
    child.start()
    assert ours.poll(60)
    assert ours.recv() == child.pid
    child.join()
    worker.close()


def _work_in_child(worker: Worker, pipe: Connection) -> None:
    pipe.send(worker.call(os.getpid))
    worker.close()
