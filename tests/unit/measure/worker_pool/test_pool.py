from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import CancelledError, Executor, Future, as_completed
from pathlib import Path

import pytest
from tests.unit.measure.worker_pool import bad_tasks
from tests.unit.measure.worker_pool.live_processes import is_alive, nothing_left_behind, own_children, until

from intarsia.measure.worker_pool import (
    PoolBrokenError,
    Task,
    TaskOutOfMemoryError,
    TaskRaisedError,
    TaskStoppedError,
    TaskTimedOutError,
    WorkerCrashedError,
    WorkerPool,
)
from intarsia.measure.worker_pool.process_tree import children
from intarsia.support.errors import UsageError

pytestmark = pytest.mark.quick_tests(
    9,
    also=[
        "test_a_task_that_is_told_to_end_can_clean_up",
        "test_a_worker_that_dies_between_tasks_takes_none_with_it",
    ],
)

MEBIBYTE = bad_tasks.MEBIBYTE


def test_it_is_an_executor_of_the_standard_library() -> None:
    pool: Executor = WorkerPool(2)
    with pool:
        assert list(pool.map(bad_tasks.good, range(10))) == [number * number for number in range(10)]
        futures = {pool.submit(bad_tasks.good, number): number for number in range(10)}
        assert all(future.result() == futures[future] ** 2 for future in as_completed(futures))
    with pytest.raises(RuntimeError, match="shut down"):
        pool.submit(bad_tasks.good, 1)


def test_a_worker_is_kept_from_task_to_task_in_a_session_of_its_own() -> None:
    with WorkerPool(1) as pool:
        first, second = (pool.submit(bad_tasks.process_and_group).result() for _ in range(2))
    assert first == second
    assert first[0] == first[1] != os.getpgrp()


def test_a_worker_is_replaced_after_as_many_tasks_as_asked() -> None:
    with WorkerPool(1, max_tasks=2) as pool:
        pids = [pool.submit(bad_tasks.process_and_group).result()[0] for _ in range(6)]
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4] == pids[5]


def test_an_exception_comes_as_text() -> None:
    with WorkerPool(1) as pool:
        error = pool.submit(bad_tasks.raise_error).exception()
    assert isinstance(error, TaskRaisedError)
    assert (error.type_name, error.text) == ("ValueError", "no such layout")
    assert str(error) == "the task raised ValueError: no such layout"
    assert "in raise_error" in error.traceback


def test_an_exception_without_words_is_told_all_the_same() -> None:
    with WorkerPool(1) as pool:
        error = pool.submit(bad_tasks.raise_unspeakable).exception()
        interrupted = pool.submit(bad_tasks.interrupt).exception()
    assert isinstance(error, TaskRaisedError)
    assert isinstance(interrupted, TaskRaisedError)
    assert error.type_name == "tests.unit.measure.worker_pool.bad_tasks.Unspeakable"
    assert error.text == "(its text raises RuntimeError)"
    assert interrupted.type_name == "KeyboardInterrupt"


def test_a_value_that_cannot_travel_is_an_exception_of_the_task() -> None:
    with WorkerPool(1) as pool:
        unpicklable = pool.submit(bad_tasks.return_function).exception()
        unreadable = pool.submit(bad_tasks.return_unreadable).exception()
        assert pool.submit(bad_tasks.good, 3).result() == 9
    assert isinstance(unpicklable, TaskRaisedError)
    assert isinstance(unreadable, TaskRaisedError)
    assert unreadable.text == "cannot be rebuilt"


@pytest.mark.processes
def test_large_values_travel_both_ways() -> None:
    data = os.urandom(20 * MEBIBYTE)
    with WorkerPool(2) as pool:
        assert all(future.result() == data for future in [pool.submit(bytes, data) for _ in range(4)])


@pytest.mark.parametrize("argument", [threading.Lock(), lambda: None], ids=["lock", "lambda"])
def test_what_cannot_be_sent_is_refused_at_once(argument: object) -> None:
    with WorkerPool(1) as pool, pytest.raises(UsageError, match="a task cannot be sent to a worker"):
        pool.submit(repr, argument)


@pytest.mark.processes
def test_the_main_script_is_not_run_again_and_its_functions_are_refused(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import operator\n"
        "from intarsia.measure.worker_pool import WorkerPool\n"
        "print('main')\n"
        "def own(): pass\n"
        "pool = WorkerPool(1)\n"
        "print(pool.submit(operator.neg, 4).result())\n"
        "try:\n    pool.submit(own)\nexcept Exception as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == (
        "main\n-4\nown is defined in the main script, which workers do not run\n"
        "help: define it in a module and import it from there\n"
    )
    assert done.stderr == ""


def test_the_end_of_the_output_comes_with_a_failure_but_not_that_of_other_tasks() -> None:
    with WorkerPool(1) as pool:
        pool.submit(print, "somebody else's").result()
        crash = pool.submit(bad_tasks.print_and_crash).exception()
        flood = pool.submit(bad_tasks.flood).exception()
        quiet = pool.submit(bad_tasks.raise_error).exception()
    assert isinstance(crash, WorkerCrashedError)
    assert isinstance(flood, TaskRaisedError)
    assert isinstance(quiet, TaskRaisedError)
    assert crash.output.startswith("last words\n")
    assert "in print_and_crash" in crash.output
    assert len(flood.output) == 8192
    assert flood.output.endswith("flood the end")
    assert quiet.output == ""


def test_a_task_that_is_told_to_end_can_clean_up(tmp_path: Path) -> None:
    with WorkerPool(1) as pool:
        task = Task(bad_tasks.clean_up_when_told, (tmp_path / "note",), timeout_s=0.3)
        error = pool.submit_task(task).exception()
    assert isinstance(error, TaskTimedOutError)
    assert error.limit_s == 0.3
    assert (tmp_path / "note").read_text() == "clean"


def test_all_that_a_task_has_started_ends_with_it(tmp_path: Path) -> None:
    with WorkerPool(1) as pool:
        error = pool.submit(bad_tasks.leave_processes_and_crash, tmp_path / "pids").exception()
        assert isinstance(error, WorkerCrashedError)
        pids = tuple(map(int, (tmp_path / "pids").read_text().split()))
        assert len(pids) == 2
        assert not any(map(is_alive, pids))


@pytest.mark.processes
def test_memory_of_child_processes_counts() -> None:
    with WorkerPool(1) as pool:
        task = Task(bad_tasks.allocate_in_a_child, timeout_s=60.0, memory_bytes=200 * MEBIBYTE)
        error = pool.submit_task(task).exception()
    assert isinstance(error, TaskOutOfMemoryError)
    assert "more than its limit of 200 MiB" in str(error)
    assert error.limit_bytes == 200 * MEBIBYTE


def test_a_limit_of_memory_holds_for_its_task_only() -> None:
    with WorkerPool(1) as pool:
        refused = Task(bad_tasks.allocate_at_once, memory_bytes=MEBIBYTE)
        assert isinstance(pool.submit_task(refused).exception(), TaskOutOfMemoryError)
        small = Task(bytearray, (4,), memory_bytes=MEBIBYTE)
        assert pool.submit_task(small).result() == bytearray(4)
        assert pool.submit(bad_tasks.allocate, 600 * MEBIBYTE).result() == 600 * MEBIBYTE


@pytest.mark.processes
def test_a_task_that_closes_its_connection_and_goes_on_is_ended() -> None:
    with WorkerPool(1) as pool:
        error = pool.submit(bad_tasks.close_files_and_loop).exception()
    assert isinstance(error, WorkerCrashedError)
    assert "the connection of its process" in str(error)


def test_a_worker_without_standard_output_is_replaced() -> None:
    with WorkerPool(1) as pool:
        assert pool.submit(bad_tasks.close_output).result() == 5
        error = pool.submit(bad_tasks.print_and_crash).exception()
    assert isinstance(error, WorkerCrashedError)
    assert error.output.startswith("last words\n")


def test_a_worker_that_can_do_no_other_task_is_replaced() -> None:
    with WorkerPool(1) as pool:
        first = pool.submit(bad_tasks.process_and_group).result()
        assert pool.submit(bad_tasks.spoil_and_return).result() == first
        assert isinstance(pool.submit(bad_tasks.spoil_and_raise).exception(), TaskRaisedError)
        assert pool.submit(bad_tasks.process_and_group).result() != first


def test_a_task_that_forks_replies_once() -> None:
    with WorkerPool(1) as pool:
        assert pool.submit(bad_tasks.come_back_twice).result() == 7
        assert pool.submit(bad_tasks.good, 2).result() == 4


def test_a_worker_that_dies_between_tasks_takes_none_with_it() -> None:
    with WorkerPool(1) as pool:
        worker, _ = pool.submit(bad_tasks.process_and_group).result()
        os.kill(worker, signal.SIGSTOP)
        given = pool.submit(bad_tasks.good, 4)
        assert until(given.running)
        os.kill(worker, signal.SIGKILL)
        assert given.result() == 16


@pytest.mark.processes
def test_a_task_that_kills_its_parent_leaves_running_tasks_alone(tmp_path: Path) -> None:
    with WorkerPool(2) as pool:
        waiting = pool.submit(bad_tasks.wait_for, tmp_path / "go")
        assert isinstance(pool.submit(bad_tasks.kill_parent).exception(), WorkerCrashedError)
        assert pool.submit(bad_tasks.good, 3).result() == 9
        (tmp_path / "go").touch()
        assert waiting.result() == "seen"


def test_temporary_files_are_removed_with_their_worker() -> None:
    with WorkerPool(1) as pool:
        folder = Path(pool.submit(bad_tasks.temporary_folder).result())
        assert folder.is_dir()
        pool.submit(bad_tasks.abort).exception()
        assert not folder.exists()
        assert folder.parent.is_dir()
    assert not folder.parent.exists()


def test_a_waiting_task_can_be_cancelled(tmp_path: Path) -> None:
    with WorkerPool(1) as pool:
        running = pool.submit(bad_tasks.wait_for, tmp_path / "go")
        waiting = pool.submit(bad_tasks.good, 3)
        assert waiting.cancel()
        assert until(running.running)
        assert not running.cancel()
        pool.shutdown(wait=False, cancel_futures=True)
        (tmp_path / "go").touch()
        assert running.result() == "seen"


def test_stopping_ends_what_runs_and_cancels_what_waits(tmp_path: Path) -> None:
    with WorkerPool(1) as pool:
        running = pool.submit(bad_tasks.say_and_wait, tmp_path / "pid")
        waiting = pool.submit(bad_tasks.good, 3)
        assert until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
        pool.stop()
    assert isinstance(running.exception(), TaskStoppedError)
    with pytest.raises(CancelledError):
        waiting.result()
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_an_exception_in_the_block_stops_the_pool(tmp_path: Path) -> None:
    def interrupted(pool: WorkerPool) -> None:
        with pool:
            running.append(pool.submit(bad_tasks.say_and_wait, tmp_path / "pid"))
            assert until((tmp_path / "pid").exists)
            raise KeyboardInterrupt

    running: list[Future[None]] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(WorkerPool(1))
    assert isinstance(running[0].exception(), TaskStoppedError)


def test_a_pool_that_is_dropped_finishes_its_tasks_and_ends() -> None:
    before = own_children()
    assert WorkerPool(1).submit(bad_tasks.good, 4).result() == 16
    assert until(lambda: own_children() == before)


def test_modules_are_imported_before_workers_are_forked() -> None:
    with WorkerPool(1, preload=("sqlite3",), max_tasks=1) as pool:
        assert list(pool.map(bad_tasks.is_loaded, ["sqlite3", "sqlite3", "wave"])) == [True, True, False]


@pytest.mark.processes
def test_a_module_that_cannot_be_imported_breaks_the_pool() -> None:
    with nothing_left_behind():
        pool = WorkerPool(2, preload=("intarsia.no_such_module",))
        future = pool.submit(bad_tasks.good, 1)
        with pytest.raises(PoolBrokenError, match=r"importing intarsia\.no_such_module: ModuleNotFoundError"):
            future.result()
        pool.shutdown()
        with pytest.raises(PoolBrokenError):
            pool.submit(bad_tasks.good, 1)


@pytest.mark.processes
def test_a_killed_fork_server_takes_no_worker_with_it() -> None:
    before = own_children()
    with nothing_left_behind(), WorkerPool(2) as pool:
        assert list(pool.map(bad_tasks.good, range(4))) == [0, 1, 4, 9]
        (server,) = own_children() - before
        assert until(lambda: len(pool.worker_pids()) == 2)  # one of them may have done all the tasks
        workers = pool.worker_pids()
        os.kill(server, signal.SIGKILL)
        assert list(pool.map(bad_tasks.good, range(4))) == [0, 1, 4, 9]
        assert set(pool.worker_pids()) == set(workers)
        os.kill(workers[0], signal.SIGKILL)  # its keeper lives and forks another
        assert until(lambda: workers[0] not in pool.worker_pids())
        assert list(pool.map(bad_tasks.good, range(4))) == [0, 1, 4, 9]


def test_pools_that_preload_the_same_have_one_fork_server() -> None:
    before = own_children()
    with (
        nothing_left_behind(),
        WorkerPool(1, preload=("json",)) as first,
        WorkerPool(1, preload=("json",)) as second,
    ):
        assert [pool.submit(bad_tasks.good, 2).result() for pool in (first, second)] == [4, 4]
        assert len(own_children() - before) == 1
        with WorkerPool(1, preload=("csv",)) as other:
            assert other.submit(bad_tasks.good, 2).result() == 4
            assert len(own_children() - before) == 2


@pytest.mark.parametrize(("workers", "max_tasks"), [(0, None), (1, 0)])
def test_a_pool_without_workers_or_tasks_is_refused(workers: int, max_tasks: int | None) -> None:
    with pytest.raises(ValueError, match="a pool needs a worker and a task for it"):
        WorkerPool(workers, max_tasks=max_tasks)


@pytest.mark.processes
def test_killed_keepers_are_replaced() -> None:
    before = own_children()
    with WorkerPool(2) as pool:
        assert pool.submit(bad_tasks.good, 1).result() == 1
        (server,) = own_children() - before
        assert until(lambda: len(children(server)) == 2)
        keepers = set(children(server))
        for keeper in keepers:
            os.kill(keeper, signal.SIGKILL)
        assert until(lambda: len(set(children(server)) - keepers) == 2)
        assert list(pool.map(bad_tasks.good, range(20))) == [number * number for number in range(20)]
