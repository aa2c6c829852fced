"""A Dask scheduler and workers as processes of their own, on this machine only, for tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.unit.measure.worker_pool.live_processes import until

from intarsia.measure.worker_pool.process_tree import children

ROOT = Path(__file__).parents[4]


def keepers(worker: int) -> tuple[int, ...]:
    """The processes in which a worker measures; what libraries start at its side is none of them."""
    found: list[int] = []
    for pid in children(worker):
        with contextlib.suppress(OSError):  # it has ended
            if b"worker_pool.fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found += children(pid)
    return tuple(found)


@dataclass
class Processes:
    """A scheduler, and the workers that a test starts.

    Attributes:
        folder: Folder for files of workers and logs.
        environment: Environment variables of all processes, added to those of this process.
        address: Address of the scheduler.
    """

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _scheduler: subprocess.Popen[bytes] = field(init=False)

    def start_scheduler(self, port: int = 0) -> None:
        """Start a scheduler; on a free port if it is 0."""
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        given = ("--host", "127.0.0.1", "--port", str(port))
        self._scheduler = self._start("scheduler", *given, "--scheduler-file", str(file))
        assert until(lambda: file.exists() and file.read_text().endswith("}")), self.logs()
        self.address = json.loads(file.read_text())["address"]

    def start_worker(
        self, *options: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """A worker without a nanny: who kills the process has killed the worker."""
        given = (*("--nthreads", "1", "--no-nanny", "--host", "127.0.0.1"), *options)
        local = ("--local-directory", str(self.folder / "workers"))
        return self._start("worker", self.address, *given, *local, environment=environment)

    def expect_workers(self, count: int) -> tuple[str, ...]:
        """Wait until so many workers are there; their addresses."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)
            return tuple(client.nthreads())

    def pids_told(self) -> tuple[int, ...]:
        """What the workers themselves say; those of nannies are not the processes that were started."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            return tuple(client.run(os.getpid).values())

    def worker_pids(self) -> tuple[int, ...]:
        return tuple(process.pid for process in self._started if process is not self._scheduler)

    def kill_scheduler(self) -> None:
        self._scheduler.kill()
        self._scheduler.wait()

    def restart_scheduler(self) -> None:
        """Start a new scheduler at the address of the killed one; workers have ended with that one."""
        self.start_scheduler(int(self.address.rsplit(":", 1)[1]))

    def logs(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def end(self) -> None:
        """Kill all: when workers without a nanny are asked to end, some versions of Dask may take forever."""
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(
        self, command: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        number = len(self._started)
        with (self.folder / f"{number}-{command}.log").open("wb") as log:
            process = subprocess.Popen(
                (sys.executable, "-m", "dask", command, *arguments, "--no-dashboard"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment, "PYTHONPATH": str(ROOT), **(environment or {})},
                start_new_session=True,
            )
        self._started.append(process)
        return process


@contextmanager
def dask_processes(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[Processes]:
    """A scheduler without workers; what a test starts ends with the block."""
    processes = Processes(folder, environment or {})
    try:
        processes.start_scheduler()
        yield processes
    finally:
        processes.end()
