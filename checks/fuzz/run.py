"""Run mutations in child processes with limits, and collect what a reader must not do.

A reader may return or raise an IntarsiaError. Whatever else it does is a finding: another exception, the end
of its process, more than 10 seconds, or more than 2 GiB of memory.
"""

from __future__ import annotations

import gc
import mmap
import os
import resource
import signal
import struct
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Final

from checks.fuzz.kinds import Kind
from intarsia.support.errors import IntarsiaError

SECONDS: Final = 10.0
"""Time in seconds after which a reader hangs."""
MOST_BYTES: Final = 2 << 30
"""Memory in bytes that a reader may take."""
_MOST_INPUT: Final = 16 << 20
_MOST_PROBLEM: Final = 300
_HEAD: Final = struct.Struct(f"<qq{_MOST_PROBLEM}s")
"""Number of the run, size of its input, and its problem in UTF-8."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that a reader fails on.

    Attributes:
        kind: Name of the kind.
        number: Number of the run; -1 for an input of the corpus.
        problem: Problem in one line.
        data: Input.
    """

    kind: str
    number: int
    problem: str
    data: bytes

    def save(self, corpus: Path) -> Path:
        """Write the input into the corpus, and return its path."""
        path = corpus / self.kind / sha256(self.data).hexdigest()[:16]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data)
        return path


def fuzz(name: str, kind: Kind, runs: int, seed: int, corpus: Sequence[bytes] = ()) -> list[Finding]:
    """Run the inputs of the corpus and then mutations, and return the findings.

    Args:
        name: Name of the kind.
        kind: Seeds and reader.
        runs: Number of mutations; the same numbers and seed give the same ones.
        seed: Random seed.
        corpus: Inputs that were findings once.
    """
    shared = mmap.mmap(-1, _HEAD.size + _MOST_INPUT)
    # A child that collects a session of onnxruntime of this process waits for threads that it does not have.
    gc.collect()
    gc.freeze()
    try:
        return _run_children(shared, name, kind, runs, seed, corpus)
    finally:
        gc.unfreeze()


def _run_children(
    shared: mmap.mmap, name: str, kind: Kind, runs: int, seed: int, corpus: Sequence[bytes]
) -> list[Finding]:
    """Run a child until it ends with a finding, and the next one from there on, until all runs are done."""
    findings: list[Finding] = []
    number = -len(corpus)
    while number < runs:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _run_in_child(shared, name, kind, range(number, runs), seed, corpus)
        _, status = os.waitpid(child, 0)
        number, size, problem = _HEAD.unpack(shared[: _HEAD.size])
        if os.waitstatus_to_exitcode(status) == 0:
            break
        data = shared[_HEAD.size : _HEAD.size + size]
        findings.append(Finding(name, max(number, -1), _problem(status, problem), data))
        number += 1
    return findings


def _run_in_child(
    shared: mmap.mmap, name: str, kind: Kind, numbers: range, seed: int, corpus: Sequence[bytes]
) -> None:
    """Run inputs until one is a finding; the exit code is 0 if none is, 1 for an exception."""
    try:
        _limit()
        for number in numbers:
            random = Random(f"{name} {seed} {number}")
            data = corpus[number + len(corpus)] if number < 0 else kind.mutate(kind.seeds, random)
            data = data[:_MOST_INPUT]
            shared[: _HEAD.size + len(data)] = _HEAD.pack(number, len(data), b"") + data
            signal.setitimer(signal.ITIMER_REAL, SECONDS)  # its default action ends the process
            try:
                kind.read(data)
            except IntarsiaError:
                continue
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as error:
        text = _description(error).encode()[:_MOST_PROBLEM]
        number, size, _ = _HEAD.unpack(shared[: _HEAD.size])
        shared[: _HEAD.size] = _HEAD.pack(number, size, text)
        os._exit(1)
    os._exit(0)


def _limit() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # What engines print about garbage is of no interest.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)


def _description(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "takes more than 2 GiB"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())
    return f"{type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}: {text}"[:200]


def _problem(status: int, described: bytes) -> str:
    """Return what was wrong with an input by the end of its process, and the description of an exception."""
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGALRM:
        return f"takes more than {SECONDS:g} s"
    if code < 0:
        return f"ends the process: {signal.Signals(-code).name}"
    return described.rstrip(b"\0").decode("utf-8", "replace")
