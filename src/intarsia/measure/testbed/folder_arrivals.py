"""Bring workloads to the workers of a Dask cluster before candidates need them.

Dask gives a task to workers that have its arguments already. If each candidate came with its workload, all
would queue at the first worker that has it, and others would get some by work stealing only. So each worker
gets a task of its own that unpacks the workload there. Once all workers have it, candidates only name it, and
go to whichever worker is free. Dask may then drop its copies: the files stay as long as the session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from intarsia.measure.testbed.parcel import ArrivedFolder
from intarsia.measure.testbed.station import has_folder, unpack_there
from intarsia.measure.testbed.station_session import StationSettings

if TYPE_CHECKING:
    from distributed import Client, Future

_PRIORITY: Final = 10
"""Priority of unpacking: candidates that wait at the worker come later."""


@dataclass(eq=False)
class FolderArrivals:
    """What has arrived at which workers, by the name of a folder and the address of a worker."""

    client: Client
    _tasks: dict[str, dict[str, Future[Any]]] = field(default_factory=dict)

    def bring(
        self,
        name: str,
        parts: Sequence[Future[Any]],
        settings: StationSettings,
        workers: Mapping[str, int],
        most: int,
    ) -> None:
        """Begin to bring a folder to workers that lack it; tasks of workers that are gone are dropped.

        Args:
            name: Name of the folder.
            parts: Parts of its parcel.
            settings: Settings of the session.
            workers: Number of threads of each worker, by address.
            most: Maximum number of workers that the folder is needed on.
        """
        tasks = self._tasks.setdefault(name, {})
        for gone in tasks.keys() - workers.keys():
            tasks.pop(gone).cancel()
        missing = (worker for worker in _rotated(name, workers) if worker not in tasks)
        for worker in islice(missing, max(0, most - len(tasks))):
            tasks[worker] = self.client.submit(
                unpack_there, list(parts), settings, workers=[worker], priority=_PRIORITY, pure=False
            )

    def threads(self, name: str, workers: Mapping[str, int]) -> int:
        """Return the number of threads of the workers that have a folder."""
        tasks = self._tasks.get(name, {})
        return sum(count for worker, count in workers.items() if _has_ended(tasks.get(worker)))

    def arrived(self, name: str, workers: Mapping[str, int]) -> ArrivedFolder | None:
        """Return the parcel that names a folder, if all workers have it."""
        tasks = self._tasks.get(name, {})
        is_everywhere = bool(workers) and all(_has_ended(tasks.get(worker)) for worker in workers)
        return ArrivedFolder(name) if is_everywhere else None

    def check(self, name: str, session: str) -> None:
        """Find out which workers have a folder: it has been missing on one."""
        here = self.client.run(has_folder, session, name, on_error="return")
        tasks = self._tasks.get(name, {})
        for worker in [worker for worker in tasks if here.get(worker) is not True]:
            tasks.pop(worker).cancel()

    def forget(self, name: str) -> None:
        """Forget a folder that no further task needs."""
        for task in self._tasks.pop(name, {}).values():
            task.cancel()


def _rotated(name: str, workers: Mapping[str, int]) -> list[str]:
    """Return the workers in an order that differs by folder, so that small workloads spread."""
    ordered = sorted(workers)
    start = sum(name.encode()) % max(1, len(ordered))
    return [*ordered[start:], *ordered[:start]]


def _has_ended(task: Future[Any] | None) -> bool:
    return task is not None and task.status == "finished"
