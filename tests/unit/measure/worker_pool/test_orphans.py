"""However the program that has a pool ends, its workers end too, with all they have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.measure.worker_pool.live_processes import is_alive, until

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[4]
SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from intarsia.measure.worker_pool import WorkerPool
from tests.unit.measure.worker_pool import bad_tasks
folder = Path(sys.argv[1])
pool = WorkerPool(2)
pool.submit(bad_tasks.leave_processes_and_loop, folder / "left")
pool.submit(bad_tasks.say_and_wait, folder / "worker")
while not all((folder / name).exists() and (folder / name).read_text() for name in ("left", "worker")):
    time.sleep(0.01)
print(*pool.worker_pids(), flush=True)
sys.stdin.readline()
"""


def start(folder: Path, then: str) -> tuple[subprocess.Popen[str], tuple[int, ...]]:
    """A program with a pool that is at work, and the processes of its workers and what they have started."""
    script = folder / "script.py"
    script.write_text(SCRIPT + then)
    program = subprocess.Popen(
        [sys.executable, script, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        start_new_session=True,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    workers = tuple(map(int, program.stdout.readline().split()))
    left = tuple(map(int, (folder / "left").read_text().split()))
    assert (len(workers), len(left)) == (2, 2)
    assert all(map(is_alive, workers + left))
    program.stdin.write("go on\n")
    program.stdin.flush()
    return program, workers + left


@pytest.mark.parametrize(
    "then",
    ["os.kill(os.getpid(), signal.SIGKILL)", "sys.exit(0)", "pass", "os._exit(1)"],
    ids=["killed", "exits", "ends", "exits hard"],
)
def test_workers_end_with_the_program(tmp_path: Path, then: str) -> None:
    program, processes = start(tmp_path, then)
    program.communicate(timeout=60)
    assert until(lambda: not any(map(is_alive, processes)))
    assert until(lambda: not list(tmp_path.glob("intarsia-pool-*")))


def test_a_fork_of_the_program_that_lives_on_does_not_keep_workers(tmp_path: Path) -> None:
    then = "fork = os.fork()\nprint(fork, flush=True) if fork else time.sleep(600)\nos.kill(os.getpid(), 9)"
    program, processes = start(tmp_path, then)
    assert program.stdout is not None
    fork = int(program.stdout.readline())
    program.wait(timeout=60)
    try:
        assert until(lambda: not any(map(is_alive, processes)))
        assert is_alive(fork)
    finally:
        os.kill(fork, signal.SIGKILL)
        program.communicate(timeout=60)


def test_interrupting_the_terminal_reaches_the_program_only(tmp_path: Path) -> None:
    then = (
        "try:\n    print('waiting', flush=True)\n    time.sleep(600)\n"
        "except KeyboardInterrupt:\n    print('interrupted', flush=True)\ntime.sleep(600)"
    )
    program, processes = start(tmp_path, then)
    assert program.stdout is not None
    assert program.stdout.readline() == "waiting\n"
    os.killpg(program.pid, signal.SIGINT)
    assert program.stdout.readline() == "interrupted\n"
    assert all(map(is_alive, processes))
    program.kill()
    program.communicate(timeout=60)
    assert until(lambda: not any(map(is_alive, processes)))
