"""Worker processes that may die: a crash or a hang loses one verdict, nothing else."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Timer
from typing import Self, TypeAlias

from tests.backend.verdict import Column, Outcome, Verdict

ROOT = Path(__file__).parents[2]

READY = "ready"
"""The first line of a worker, when it has imported everything."""

START_SECONDS = 120.0
GRACE_SECONDS = 10.0

Heard: TypeAlias = Callable[[Verdict], object]


def worker_command(folder: Path) -> list[str]:
    """What starts a worker on the cases of a `CaseStore`'s folder."""
    return [sys.executable, "-m", "tests.backend.worker", str(folder)]


def judge_all(
    command: Sequence[str],
    names: Iterable[str],
    columns: Sequence[Column],
    workers: int,
    hung_after: float = 30.0,
    heard: Heard = lambda _: None,
) -> list[Verdict]:
    """Run cases in worker processes; every case has a verdict in every column.

    Args:
        command: Starts a worker.
        names: The cases.
        columns: Columns in which each case is run, in this order.
        workers: Number of processes.
        hung_after: Seconds that one case may take in one column.
        heard: Callback, called with each verdict as it comes, from several threads.
    """
    waiting: SimpleQueue[str] = SimpleQueue()
    for name in names:
        waiting.put(name)

    def serve(_: int) -> list[Verdict]:
        with _Worker(command, hung_after) as worker:
            return [
                verdict for name in _drained(waiting) for verdict in _told(worker.judge(name, columns), heard)
            ]

    with ThreadPoolExecutor(workers) as threads:
        return list(chain.from_iterable(threads.map(serve, range(workers))))


def _drained(waiting: SimpleQueue[str]) -> Iterator[str]:
    while True:
        try:
            yield waiting.get_nowait()
        except Empty:
            return


def _told(verdicts: Iterable[Verdict], heard: Heard) -> Iterator[Verdict]:
    for verdict in verdicts:
        heard(verdict)
        yield verdict


class _Worker:
    """One worker process at a time, started anew when it has died."""

    def __init__(self, command: Sequence[str], hung_after: float) -> None:
        self._command = command
        self._hung_after = hung_after
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def judge(self, case: str, columns: Sequence[Column]) -> Iterator[Verdict]:
        """The verdicts on a case, one per column."""
        left = list(columns)
        while left:
            process = self._process or self._start()
            self._ask(process, case, left)
            while left:
                line, is_late = self._line(process, self._hung_after)
                column = left.pop(0)
                if not line:
                    yield self._death(case, column, is_late)
                    break
                yield Verdict.from_json(json.loads(line))

    def _start(self) -> subprocess.Popen[str]:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._process = process
        if self._line(process, START_SECONDS)[0].strip() != READY:
            raise RuntimeError(f"a worker did not start: {shlex.join(self._command)}")
        return process

    @staticmethod
    def _ask(process: subprocess.Popen[str], case: str, columns: Sequence[Column]) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"case": case, "columns": columns}) + "\n")
        process.stdin.flush()

    @staticmethod
    def _line(process: subprocess.Popen[str], seconds: float) -> tuple[str, bool]:
        """The next line, empty if the process has died; and whether it was killed for being late."""
        timer = Timer(seconds, process.kill)
        timer.start()
        line = process.stdout.readline() if process.stdout else ""
        is_late = timer.finished.is_set()
        timer.cancel()
        return line, is_late and not line

    def _death(self, case: str, column: Column, is_late: bool) -> Verdict:
        code = self._end()
        if is_late:
            return Verdict(case, column, Outcome.HUNG, f"no verdict within {self._hung_after:g} s")
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Verdict(case, column, Outcome.CRASHED, f"the process died: {name}")

    def _end(self) -> int:
        """End the process, if there is one; its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.stdin:
            process.stdin.close()  # a worker that still listens ends by itself
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()
        return process.returncode
