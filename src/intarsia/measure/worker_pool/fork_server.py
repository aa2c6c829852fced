"""The process that imports modules once and forks keepers, for all pools of a program that need the same.

Importing takes about a second of a core, and a hundred MiB that forks share. The server runs no task and
starts no thread, so its forks inherit no lock. It ends with the program, or when the program closes the
connection; keepers that run go on.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
from collections.abc import Sequence
from typing import Final, NoReturn

from intarsia.measure.worker_pool.keeper import Keeper, fail
from intarsia.measure.worker_pool.messages import OUTPUT_BYTES
from intarsia.measure.worker_pool.process_tree import adopt_orphans

_EXIT_FAILED: Final = 1


def main(arguments: Sequence[str]) -> None:
    """Be a fork server; arguments: socket of requests, the program's process id, modules to import.

    A request is the folder for temporary files of a keeper, with the keeper's end of its control socket.
    """
    descriptor, program, *preload = arguments
    requests = socket.socket(fileno=int(descriptor))
    watched = _watch_process(int(program))
    if os.getppid() != int(program):
        return
    problem = _import_all(preload)
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: _reap())
    while _has_request(requests, watched):
        data, descriptors, _, _ = socket.recv_fds(requests, 1 << 16, 1)
        if not data:
            break
        control = socket.socket(fileno=descriptors[0])
        if os.fork() == 0:
            requests.close()
            _be_keeper(control, watched, os.fsdecode(data), problem)
        control.close()
    _reap()


def _reap() -> None:
    """Reap keepers that have ended, so that the program can count the time that its workers took."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _be_keeper(control: socket.socket, program: int | None, temporary: str, problem: str) -> NoReturn:
    """Run as a keeper, and exit."""
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if problem:
            fail(control, problem)
        else:
            adopt_orphans()
            Keeper(control, program, temporary).run()
    except BaseException:  # nothing may return into the server's loop
        os._exit(_EXIT_FAILED)
    os._exit(0)


def _import_all(modules: Sequence[str]) -> str:
    """Import modules, and return the problem of the first one that fails; empty if none does."""
    for module in modules:
        try:
            importlib.import_module(module)
        except BaseException as error:  # the program reports whatever importing raises
            return f"importing {module}: {type(error).__name__}: {error}"[:OUTPUT_BYTES]
    return ""


def _has_request(requests: socket.socket, program: int | None) -> bool:
    """Wait for a request; whether there may be one, and not only the end of the program."""
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    if program is not None:
        poll.register(program, select.POLLIN)
    return any(ready == requests.fileno() for ready, _ in poll.poll())


def _watch_process(pid: int) -> int | None:
    """A descriptor that becomes readable when a process ends, or None where the kernel has none."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
