from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.unit.measure.worker_pool.live_processes import nothing_left_behind

from intarsia.measure.timing.host_lock import HostBusyError, exclusive_host, host_lock_path, shared_host

HOLD = """
import os, sys, time
from pathlib import Path
from intarsia.measure.timing.host_lock import {lock}
with {lock}(path=Path(sys.argv[1])):
    print("held", flush=True)
    {then}
"""


def hold(path: Path, then: str = "sys.stdin.read(1)", lock: str = "exclusive_host") -> subprocess.Popen[str]:
    """A process that has the lock."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(lock=lock, then=then), path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock" / "timing.lock"


def test_the_file_depends_on_the_user_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = host_lock_path()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert host_lock_path() == before
    assert str(os.getuid()) in str(before)


def test_it_can_be_taken_again_and_again(path: Path) -> None:
    with nothing_left_behind():
        for _ in range(3):
            with exclusive_host(path=path, timeout_s=0.0):
                assert path.read_text() == f"{os.getpid()}\n"


def test_another_process_has_to_wait_and_is_told_for_whom(path: Path) -> None:
    holder = hold(path)
    told: list[str] = []

    def release(message: str) -> None:
        told.append(message)
        holder.communicate("x", timeout=60)

    with exclusive_host(path=path, on_wait=release):
        assert holder.returncode == 0
    assert told == [f"waiting for process {holder.pid}, which builds or times on this host"]


def test_the_wait_can_be_limited(path: Path) -> None:
    holder = hold(path)
    with pytest.raises(HostBusyError) as caught, exclusive_host(path=path, timeout_s=0.05):
        pass
    holder.communicate("x", timeout=60)
    assert str(caught.value) == (
        f"process {holder.pid} has kept the host to itself for 0.05 s\n"
        f"help: wait until it has ended, or end it; the lock is {path}"
    )


@pytest.mark.processes
def test_a_killed_holder_lets_go(path: Path) -> None:
    holder = hold(path)
    with exclusive_host(path=path, on_wait=lambda _: holder.send_signal(signal.SIGKILL)):
        pass
    holder.communicate(timeout=60)
    assert holder.returncode == -signal.SIGKILL


@pytest.mark.processes
def test_a_fork_of_a_killed_holder_does_not_keep_it(path: Path) -> None:
    then = "fork = os.fork()\n    print(fork, flush=True) if fork else time.sleep(600)\n    time.sleep(600)"
    holder = hold(path, then)
    assert holder.stdout is not None
    fork = int(holder.stdout.readline())
    try:
        holder.kill()
        holder.wait(timeout=60)
        with exclusive_host(path=path, timeout_s=30.0):
            os.kill(fork, 0)  # it still runs
    finally:
        os.kill(fork, signal.SIGKILL)
        holder.communicate(timeout=60)


def test_an_exception_in_the_block_lets_go(path: Path) -> None:
    with pytest.raises(KeyError), exclusive_host(path=path):
        raise KeyError
    with exclusive_host(path=path, timeout_s=0.0):
        pass


def test_threads_exclude_each_other(path: Path) -> None:
    inside, overlaps = [0], [0]

    def work() -> None:
        for _ in range(5):
            with exclusive_host(path=path):
                inside[0] += 1
                overlaps[0] += inside[0] > 1
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, overlaps) == ([0], [0])


def test_a_removed_file_is_not_locked_in_vain(path: Path) -> None:
    with exclusive_host(path=path):
        path.unlink()
    with exclusive_host(path=path, timeout_s=0.0):
        assert path.read_text() == f"{os.getpid()}\n"


def test_a_folder_that_others_can_write_to_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o777)
    with (
        pytest.raises(OSError, match="others can write to the folder of the lock"),
        exclusive_host(path=path),
    ):
        pass


@pytest.mark.processes
def test_several_share_the_host(path: Path) -> None:
    holders = [hold(path, lock="shared_host") for _ in range(2)]
    with shared_host(path=path, timeout_s=0.0), shared_host(path=path, timeout_s=0.0):
        pass
    for holder in holders:
        holder.communicate("x", timeout=60)
        assert holder.returncode == 0


@pytest.mark.processes
def test_who_wants_the_host_alone_waits_until_nobody_shares_it(path: Path) -> None:
    first, second = (hold(path, lock="shared_host") for _ in range(2))
    first.communicate("x", timeout=60)
    with pytest.raises(HostBusyError), exclusive_host(path=path, timeout_s=0.05):
        pass
    told: list[str] = []

    def release(message: str) -> None:
        told.append(message)
        second.communicate("x", timeout=60)

    with exclusive_host(path=path, on_wait=release):
        assert second.returncode == 0
    assert told == [f"waiting for process {second.pid}, which builds or times on this host"]


@pytest.mark.processes
def test_who_would_share_the_host_waits_for_who_has_it_alone(path: Path) -> None:
    holder = hold(path)
    with pytest.raises(HostBusyError), shared_host(path=path, timeout_s=0.05):
        pass

    def release(_: str) -> None:
        holder.communicate("x", timeout=60)

    with shared_host(path=path, on_wait=release):
        assert holder.returncode == 0


@pytest.mark.processes
def test_who_waits_gets_in_before_others_that_share(path: Path) -> None:
    """Otherwise builds that follow one another would never let a timing begin."""
    sharing = hold(path, lock="shared_host")
    waiting = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(lock="exclusive_host", then="sys.stdin.read(1)"), path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert waiting.stdout is not None
    next_file = path.with_name(f"{path.name}.next")
    while not (next_file.exists() and next_file.read_text() == f"{waiting.pid}\n"):
        time.sleep(0.01)
    with pytest.raises(HostBusyError), shared_host(path=path, timeout_s=0.05):
        pass
    sharing.communicate("x", timeout=60)
    assert waiting.stdout.readline() == "held\n"
    waiting.communicate("x", timeout=60)


@pytest.mark.processes
def test_a_process_that_takes_it_again_and_again_lets_others_in(path: Path) -> None:
    """Between two of its turns there is far less time than between two looks of another one."""
    then = (
        "pass\nfor number in range(10_000):\n    with exclusive_host(path=Path(sys.argv[1])):\n"
        "        time.sleep(0.06)\n    print(number, flush=True)"
    )
    busy = hold(path, then)
    try:
        for _ in range(3):
            with exclusive_host(path=path):
                pass
        assert busy.poll() is None
        busy.kill()
        said, _ = busy.communicate(timeout=60)
        assert len(said.split()) < 30  # without a queue it is hundreds of turns, by chance
    finally:
        busy.kill()
        busy.wait(timeout=60)
