"""Worker processes of this machine."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Final, Self

from intarsia.measure.arrays.constant_store import ConstantStore
from intarsia.measure.builder import Builder
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.reference_task import add_reference
from intarsia.measure.runner import QUICK, Built, Raced, Runner
from intarsia.measure.testbed.run_folder import RunFolder
from intarsia.measure.testbed.testbed import Measured
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.measure.workers import TaskLimits, Workers
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.callbacks import silent
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.support.files import folder_size
from intarsia.target import Host

BATCH: Final = 16
"""Number of candidates that are built before they are run, so that no build disturbs a run."""

KEPT_ARTIFACTS: Final = 64
KEPT_BYTES: Final = 1 << 30
RACE_KEPT_BYTES: Final = 1 << 28
"""Built candidates are kept, because those that race were measured by themselves before, up to so many."""

PRELOAD: Final = ("intarsia.measure.worker_modules",)
"""Modules that workers are forked with."""


@dataclass(frozen=True, slots=True)
class TestbedLimits:
    """Limits of candidates.

    Attributes:
        build_seconds: Time that one build may take.
        run_seconds: Time that one run or turn may take, with loading and checking.
        memory_bytes: Memory that a build or a run may add, or None.
        policy: Timing of candidates outside of races.
        times_best: A run may take this many times the shortest run of another candidate for its workload.
        least_seconds: Time that a run may take in any case.
    """

    __test__ = False  # not a test, though its name begins like one

    build_seconds: float = 120.0
    run_seconds: float = 120.0
    memory_bytes: int | None = None
    policy: TimingPolicy = QUICK
    times_best: float = 10.0
    least_seconds: float = 15.0

    @classmethod
    def of_budget(cls, seconds: float) -> Self:
        """Return limits that suit a budget: a candidate that hangs must not outlast it many times.

        A build may take longer than a run, because compile time does not predict run time. It is
        limited all the same: no other process can time anything on this host while one builds.

        Args:
            seconds: The budget of the whole run.
        """
        return cls(
            build_seconds=min(DEFAULT_LIMITS.build_seconds, max(60.0, 3 * seconds)),
            run_seconds=min(DEFAULT_LIMITS.run_seconds, max(20.0, 2 * seconds)),
        )

    def of_run(self, shortest: float | None) -> float:
        """Return the seconds that one run may take.

        Args:
            shortest: Seconds of the shortest run of a right candidate for the same workload, if there is one.
        """
        if shortest is None:
            return self.run_seconds
        return min(self.run_seconds, max(self.least_seconds, self.times_best * shortest))


DEFAULT_LIMITS: Final = TestbedLimits()


@dataclass(eq=False)
class LocalTestbed(ClosedOnExit):
    """Builds in several workers at a time, and runs in one, while nothing is built.

    Attributes:
        host: This machine.
        workers: Worker processes.
        builder: Builds candidates.
        runner: Runs them.
        folder: Holds workloads and built candidates; removed at the end.
        limits: Time and memory that candidates may take.
        seed: Seed of random inputs.
        clock: Function that returns seconds.
    """

    host: Host
    workers: Workers
    builder: Builder
    runner: Runner
    folder: RunFolder
    limits: TestbedLimits
    seed: int = 0
    clock: Callable[[], float] = time.monotonic
    _workloads: dict[str, WorkloadFolder] = field(default_factory=dict)
    _complete: set[str] = field(default_factory=set)
    """Digests of the workloads that have their reference result."""
    _built_early: dict[Path, tuple[Future[Outcome], float]] = field(default_factory=dict)
    """Finished builds of candidates that are not measured yet, with their share of the seconds."""
    _kept: dict[Path, str] = field(default_factory=dict)
    """Artifacts in the order they were made, with their workload."""
    _thrown_away: list[Path] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _shortest_runs: dict[str, float] = field(default_factory=dict)
    """Seconds of the shortest run of a right candidate, by the digest of its workload."""

    @classmethod
    def open(
        cls,
        host: Host,
        *,
        workers: int | None = None,
        limits: TestbedLimits = DEFAULT_LIMITS,
        seed: int = 0,
        preload: tuple[str, ...] = (),
        on_wait: Callable[[str], None] | None = None,
        parent: Path | None = None,
    ) -> Self:
        """Make folders and start workers.

        Args:
            host: This machine.
            workers: Builds at a time; default: as many as there are cores for us.
            limits: Limits of candidates.
            seed: Seed of random inputs.
            preload: Modules that workers import at the beginning, such as kinds of candidates.
            on_wait: Called on the first wait only, with the process that holds the host.
            parent: Parent of the new folder; default: the system's folder for temporary files.
        """
        on_wait = None if on_wait is None else _once(on_wait)
        owned = RunFolder.open(parent)
        folder = owned.path
        for name in ("built", "constants", "workloads", "thrown away"):
            (folder / name).mkdir()
        started = Workers.start(workers or host.cores, folder / "pools", (*PRELOAD, *preload), on_wait)
        memory = limits.memory_bytes
        builder = Builder(started, folder / "built", TaskLimits(limits.build_seconds, memory))
        runner = Runner(started, TaskLimits(limits.run_seconds, memory), limits.policy)
        return cls(host, started, builder, runner, owned, limits, seed)

    @cached_property
    def _constants(self) -> ConstantStore:
        return ConstantStore(self.folder.path / "constants")

    @property
    def on_wait(self) -> Callable[[str], None] | None:
        """See Testbed.on_wait."""
        return self.workers.on_wait

    @property
    def width(self) -> int:
        """As many candidates as are built before they are run."""
        return BATCH

    @property
    def lanes(self) -> int:
        """See Testbed.lanes; the seconds of parallel builds are divided among them already."""
        return 1

    def prepare(self, workload: Workload) -> WorkloadFolder:
        """See Testbed.prepare; the reference result is computed in a worker."""
        folder = self._given(workload)
        if workload.digest not in self._complete:
            if workload.expected is None:
                add_reference(self.workers.runner, folder.path, self.limits.run_seconds)
            self._complete.add(workload.digest)
        return folder

    def _given(self, workload: Workload) -> WorkloadFolder:
        """Write the files of a workload that builds need: all but the reference result."""
        if workload.digest not in self._workloads:
            parent = self.folder.path / "workloads"
            self._workloads[workload.digest] = WorkloadFolder.write(
                workload, parent, self.seed, silent, self._constants
            )
        return self._workloads[workload.digest]

    @contextlib.contextmanager
    def building(self, inputs: Sequence[MeasureInput]) -> Iterator[None]:
        """See EarlyBuilder.building."""
        distinct = {self._artifact(item): item for item in inputs}
        if not distinct:
            yield
            return
        with self.workers.building():
            start = self.clock()
            futures = {artifact: self._start_build(item) for artifact, item in distinct.items()}
            yield
            wait([future for future in futures.values() if future is not None])
            seconds = (self.clock() - start) / len(futures)
        self._built_early |= {
            artifact: (future, seconds) for artifact, future in futures.items() if future is not None
        }

    def forget(self, workload: Workload) -> None:
        """Remove the files of a workload that is not measured any more."""
        self._complete.discard(workload.digest)
        folder = self._workloads.pop(workload.digest, None)
        if folder is None:
            return
        for path in [path for path, digest in self._kept.items() if digest == workload.digest]:
            del self._kept[path]
            self._throw_away(path)
        self._throw_away(folder.path)

    def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
        """See Testbed.measure."""
        for first in range(0, len(inputs), BATCH):
            built = list(self._build(inputs[first : first + BATCH]))
            for item, outcome, build_seconds in built:
                start = self.clock()
                result = self._run(item) if outcome.error is MeasureError.OK else outcome
                yield Measured(item, result, build_seconds + self.clock() - start)

    def race(self, racers: Mapping[str, MeasureInput], limits: RaceLimits) -> Raced:
        """See Testbed.race."""
        if len({item.workload.digest for item in racers.values()}) != 1:
            raise ValueError("a race has candidates of one workload")
        outcomes = [outcome for _, outcome, _ in self._build(list(racers.values()), RACE_KEPT_BYTES)]
        built = dict(zip(racers, outcomes, strict=True))
        failures = {name: outcome for name, outcome in built.items() if outcome.error is not MeasureError.OK}
        ready = {
            name: Built(str(item.target), self._artifact(item))
            for name, item in racers.items()
            if name not in failures
        }
        if not ready:
            return Raced(None, failures)
        workload = self.prepare(next(iter(racers.values())).workload)
        raced = self.runner.race(workload, ready, limits)
        return replace(raced, failures={**failures, **raced.failures})

    def time_kernels(self, inputs: Sequence[MeasureInput], kernels: Sequence[str]) -> list[Outcome]:
        """See KernelTestbed.time_kernels."""
        outcomes = [outcome for _, outcome, _ in self._build(inputs)]
        ready = [
            self._artifact(item)
            for item, outcome in zip(inputs, outcomes, strict=True)
            if outcome.error is MeasureError.OK
        ]
        timed = self.runner.time_kernels(ready, kernels) if ready else Outcome()
        parts = iter(timed.parts)
        return [
            outcome if outcome.error is not MeasureError.OK else next(parts, timed) for outcome in outcomes
        ]

    def lend_workers(self) -> Workers:
        """See LendingTestbed.lend_workers."""
        return self.workers

    def artifact(self, measured: MeasureInput) -> Path | None:
        """See Testbed.artifact."""
        path = self._artifact(measured)
        return path if path.exists() else None

    def close(self) -> None:
        """See Testbed.close."""
        self.workers.stop()
        self.folder.close()

    def _build(
        self, inputs: Sequence[MeasureInput], kept_bytes: int = KEPT_BYTES
    ) -> Iterator[tuple[MeasureInput, Outcome, float]]:
        for item in inputs:
            self.prepare(item.workload)
        with self.workers.building():
            start, timed_out_seconds = self.clock(), 0.0
            futures: dict[Path, Future[Outcome] | None] = {}
            earlier: dict[Path, float] = {}
            for item in inputs:
                artifact = self._artifact(item)
                if artifact in self._built_early:
                    futures[artifact], earlier[artifact] = self._built_early.pop(artifact)
                elif artifact not in futures:  # equal ones are built once
                    futures[artifact] = self._start_build(item)
            if any(futures.values()):  # files go while there is something to wait for
                self._make_room(set(futures), kept_bytes)
            for item in inputs:
                future = futures[self._artifact(item)]
                outcome = Outcome() if future is None else self.workers.built(future)
                if outcome.error is not MeasureError.OK:
                    self.builder.discard(self._artifact(item))
                    self._kept.pop(self._artifact(item), None)
                if outcome.error is MeasureError.BUILD_TIMEOUT:
                    # All of it: by this time a later run sees how long the limit was.
                    timed_out_seconds = seconds = self.builder.limits.seconds
                else:
                    seconds = max(0.0, self.clock() - start - timed_out_seconds) / len(inputs)
                yield item, outcome, seconds + earlier.get(self._artifact(item), 0.0)

    def _start_build(self, item: MeasureInput) -> Future[Outcome] | None:
        """Start to build a candidate; None if its artifact exists already."""
        artifact = self._artifact(item)
        if artifact.exists():
            return None
        self._kept[artifact] = item.workload.digest
        return self.builder.submit(item, self._given(item.workload))

    def _run(self, item: MeasureInput) -> Outcome:
        built = Built(str(item.target), self._artifact(item))
        workload, digest = self.prepare(item.workload), item.workload.digest
        shortest = self._shortest_runs.get(digest)
        start = self.clock()
        outcome = self.runner.run(workload, built, self.limits.of_run(shortest))
        if outcome.error is MeasureError.OK:
            seconds = self.clock() - start  # a wait for the host is in it, which makes limits longer only
            self._shortest_runs[digest] = seconds if shortest is None else min(shortest, seconds)
        return outcome

    def _artifact(self, item: MeasureInput) -> Path:
        return self.builder.artifact(item, self._given(item.workload))

    def _throw_away(self, path: Path) -> None:
        """Move a folder away now, and remove it later."""
        destination = self.folder.path / "thrown away" / str(next(self._numbers))
        with contextlib.suppress(FileNotFoundError):  # it was never built
            self._thrown_away.append(path.rename(destination))

    def _make_room(self, wanted: AbstractSet[Path], most_bytes: int) -> None:
        """Remove folders that were thrown away, and the oldest unneeded artifacts until the rest is small."""
        for path in self._thrown_away:
            shutil.rmtree(path, ignore_errors=True)
        self._thrown_away.clear()
        sizes = {path: folder_size(path) for path in self._kept if path.exists()}
        for path in list(self._kept):
            if sum(sizes.values()) <= most_bytes and len(self._kept) <= KEPT_ARTIFACTS:
                return
            if path not in wanted:
                del self._kept[path]
                sizes.pop(path, None)
                shutil.rmtree(path, ignore_errors=True)


def _once(callback: Callable[[str], None]) -> Callable[[str], None]:
    calls: list[str] = []

    def first(text: str) -> None:
        if not calls:
            calls.append(text)
            callback(text)

    return first
