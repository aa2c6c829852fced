"""A forked child begins anew."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from intarsia.support.forks import ForkSafeLock, hold_off_forks, reset_in_children


def exit_status_of_child(action: Callable[[], bool]) -> int:
    """Fork, call the action in the child, and return its exit status: 0 if the action returned true."""
    process = os.fork()
    if process == 0:
        try:
            os._exit(0 if action() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_a_lock_that_another_thread_holds_is_free_in_the_child() -> None:
    lock, is_held, may_end = ForkSafeLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            may_end.wait()

    def take() -> bool:
        with lock:
            return True

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait()
    assert exit_status_of_child(take) == 0
    may_end.set()
    holder.join()


def test_registered_objects_begin_in_the_child_and_not_in_the_parent() -> None:
    class Counter:
        begun = 0

        def reset_in_child(self) -> None:
            self.begun += 1

    counter = Counter()
    reset_in_children(counter)
    assert exit_status_of_child(lambda: counter.begun == 1) == 0
    assert counter.begun == 0


def test_a_fork_waits_for_blocks_without_forks() -> None:
    events: list[str] = []
    is_inside = threading.Event()

    def work() -> None:
        with hold_off_forks():
            is_inside.set()
            threading.Event().wait(0.05)
            events.append("end of the block")

    worker = threading.Thread(target=work)
    worker.start()
    is_inside.wait()
    assert exit_status_of_child(lambda: events == ["end of the block"]) == 0
    worker.join()
