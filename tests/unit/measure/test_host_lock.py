from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from intarsia.measure.host_lock import HostBusyError, exclusive_host, host_lock_path

HOLD = """
import os, sys, time
from pathlib import Path
from intarsia.measure.host_lock import exclusive_host
with exclusive_host(path=Path(sys.argv[1])):
    print("held", flush=True)
    {then}
"""


def hold(path: Path, then: str = "sys.stdin.read(1)") -> subprocess.Popen[str]:
    """A process that has the lock."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(then=then), path],
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
    files = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with exclusive_host(path=path, timeout_s=0.0):
            assert path.read_text() == f"{os.getpid()}\n"
    assert len(list(Path("/proc/self/fd").iterdir())) == files


def test_another_process_has_to_wait_and_is_told_for_whom(path: Path) -> None:
    holder = hold(path)
    told: list[str] = []

    def release(message: str) -> None:
        told.append(message)
        holder.communicate("x", timeout=60)

    with exclusive_host(path=path, on_wait=release):
        assert holder.returncode == 0
    assert told == [f"waiting for process {holder.pid}, which is timing on this host"]


def test_the_wait_can_be_limited(path: Path) -> None:
    holder = hold(path)
    with pytest.raises(HostBusyError) as caught, exclusive_host(path=path, timeout_s=0.05):
        pass
    holder.communicate("x", timeout=60)
    assert str(caught.value) == (
        f"process {holder.pid} has kept the host to itself for 0.05 s\n"
        f"help: wait until it has ended, or end it; the lock is {path}"
    )


def test_a_killed_holder_lets_go(path: Path) -> None:
    holder = hold(path)
    with exclusive_host(path=path, on_wait=lambda _: holder.send_signal(signal.SIGKILL)):
        pass
    holder.communicate(timeout=60)
    assert holder.returncode == -signal.SIGKILL


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
