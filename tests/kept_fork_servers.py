"""Fork servers that outlive the pools of a test."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from intarsia.measure.worker_pool.fork_server_process import ForkServerProcess

MOST: Final = 2
"""Servers that are kept at a time; each has some hundred MiB."""


class KeptForkServers:
    """Uses each shared server once more than its pools do, until others take its place."""

    def __init__(self) -> None:
        self._kept: list[ForkServerProcess] = []
        self._shared = ForkServerProcess.shared

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._kept:
            self._kept.pop().release()

    def shared(self, preload: tuple[str, ...]) -> ForkServerProcess:
        """Return what `ForkServerProcess.shared` returns, and keep it."""
        server = self._shared(preload)
        if server in self._kept:
            self._kept.remove(server)
        else:
            self._shared(preload)
        self._kept.append(server)
        if len(self._kept) > MOST:
            self._kept.pop(0).release()
        return server
