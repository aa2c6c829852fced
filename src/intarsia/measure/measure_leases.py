"""Leases of a measurer in a database that other tuners use at the same time: nothing is measured twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from intarsia.measure.database import Database
from intarsia.measure.database.record import record_key
from intarsia.measure.lease_owner import has_ended, new_owner
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.testbed import Testbed
from intarsia.support.callbacks import never
from intarsia.support.errors import DatabaseError

LEASE_S: Final = 30.0
"""Seconds after which others may measure what a tuner that died has leased."""

POLL_S: Final = 0.5
"""Seconds between two looks for what another tuner measures."""


@dataclass(eq=False)
class MeasureLeases:
    """Leases on the records that a measurer is about to make; a thread extends them while they are held.

    Attributes:
        database: Shared database; None if no other tuner can see what is measured.
        host: Digest of the machine's fingerprint.
        owner: Name of this tuner; no two have the same.
        seconds: Time after which the leases of a dead tuner end.
        pause: Function that waits for a number of seconds.
    """

    database: Database | None
    host: str
    owner: str = field(default_factory=new_owner)
    seconds: float = LEASE_S
    pause: Callable[[float], object] = time.sleep
    _held: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_idle: threading.Event = field(default_factory=threading.Event)

    def batches(
        self,
        inputs: Sequence[MeasureInput],
        most: Callable[[float], int],
        is_stored: Callable[[MeasureInput], bool],
        testbed: Testbed,
    ) -> Generator[list[MeasureInput], None, None]:
        """Yield batches of candidates that this tuner alone measures, until all have results.

        Those that another tuner measures are waited for, after all others.

        Args:
            inputs: Candidates without results, each once.
            most: Function of the seconds of the last wait that returns the size of the next batch; 0 to end.
            is_stored: Function that returns whether a candidate has a result by now, and takes note of it.
            testbed: Testbed that measures; its `on_wait` is called before the first wait for another tuner.
        """
        waiting, waited, has_waited = list(inputs), 0.0, False
        while waiting and (size := most(waited)) > 0:
            batch = self._take_first(waiting, size)
            if batch:
                waiting = [item for item in waiting if item not in batch]
                try:
                    # Another tuner may have measured them before its lease ended.
                    if new := [item for item in batch if not is_stored(item)]:
                        yield new
                        waited = 0.0
                finally:
                    self._end(map(self.key, batch))
                continue
            if not has_waited and testbed.on_wait is not None:
                testbed.on_wait("another run measures the rest: waiting for its results")
            has_waited = True
            self.pause(POLL_S)
            waited += POLL_S
            waiting = [item for item in waiting if not is_stored(item)]

    @contextmanager
    def holding(
        self, inputs: Iterable[MeasureInput], should_stop: Callable[[], bool] = never
    ) -> Iterator[None]:
        """Run the block while no other tuner is in a block of the same candidates.

        Args:
            inputs: Candidates that are measured together, at least one.
            should_stop: Function that returns true to run the block although another tuner is in it.
        """
        key = min(map(self.key, inputs))  # all tuners lease the same one of a set
        while not self._take([key]) and not should_stop():
            self.pause(POLL_S)
        try:
            yield
        finally:
            self._end([key])

    def _take_first(self, inputs: Sequence[MeasureInput], size: int) -> list[MeasureInput]:
        """Lease the first candidates that no other tuner has, at most `size`."""
        for first in range(0, len(inputs), size):
            batch = inputs[first : first + size]
            taken = self._take([self.key(item) for item in batch])
            if free := [item for item in batch if self.key(item) in taken]:
                return free
        return []

    def _take(self, keys: Sequence[str]) -> frozenset[str]:
        if self.database is None:
            return frozenset(keys)
        taken = self.database.take_leases(keys, self.owner, self.seconds)
        if len(taken) < len(keys) and self._end_leases_of_dead(set(keys) - taken):
            taken = self.database.take_leases(keys, self.owner, self.seconds)
        with self._lock:
            if taken and not self._held:
                self._is_idle = threading.Event()
                threading.Thread(target=self._extend, args=(self._is_idle,), daemon=True).start()
            self._held |= taken
        return taken

    def _end_leases_of_dead(self, keys: AbstractSet[str]) -> bool:
        """End leases of processes of this machine that were killed, and return whether there were any.

        So a run that is repeated after it was killed need not wait for the end of its leases.
        """
        assert self.database is not None
        dead = {key: owner for key, owner in self.database.lease_owners(keys).items() if has_ended(owner)}
        for key, owner in dead.items():
            self.database.end_leases([key], owner)
        return bool(dead)

    def _end(self, keys: Iterable[str]) -> None:
        if self.database is None:
            return
        with self._lock:
            ended = [key for key in keys if key in self._held]
            self._held.difference_update(ended)
            if not self._held:
                self._is_idle.set()
        with suppress(DatabaseError):  # they end by themselves
            self.database.end_leases(ended, self.owner)

    def _extend(self, is_idle: threading.Event) -> None:
        """Extend the leases again and again, until none is held."""
        assert self.database is not None
        while not is_idle.wait(self.seconds / 4):
            with self._lock:
                held = sorted(self._held)
            with suppress(DatabaseError):  # at worst others measure the same: the tuner itself reports it
                self.database.take_leases(held, self.owner, self.seconds)

    def key(self, item: MeasureInput) -> str:
        """Return the key of the record of a candidate."""
        return record_key(item.workload.digest, str(item.target), self.host, item.candidate.digest)
