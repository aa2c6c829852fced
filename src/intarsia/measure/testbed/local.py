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
from math import inf
from pathlib import Path
from statistics import median
from typing import Final, Self

from intarsia.measure.arrays.constant_store import ConstantStore
from intarsia.measure.builder import Builder
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.reference_task import add_reference
from intarsia.measure.runner import Raced, Runner
from intarsia.measure.schedules.kernel_folder import KernelFolder, add_kernel_reference
from intarsia.measure.schedules.kernel_workload import KernelWorkload, ScheduleInput
from intarsia.measure.testbed.limits import DEFAULT_LIMITS, TestbedLimits
from intarsia.measure.testbed.run_folder import RunFolder
from intarsia.measure.testbed.testbed import Measured
from intarsia.measure.worker_calls import AnyInput, Built
from intarsia.measure.workers import TaskLimits, Workers
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.callbacks import silent
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.support.errors import ExecutionError
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
        is_lent: Whether the workers are another testbed's, and go on after the end.
    """

    host: Host
    workers: Workers
    builder: Builder
    runner: Runner
    folder: RunFolder
    limits: TestbedLimits
    seed: int = 0
    clock: Callable[[], float] = time.monotonic
    is_lent: bool = False
    _workloads: dict[str, WorkloadFolder | KernelFolder] = field(default_factory=dict)
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
    _best: dict[tuple[str, str], float] = field(default_factory=dict)
    """Seconds of a call of the best candidate, by workload and target."""

    @classmethod
    def open(
        cls,
        host: Host,
        *,
        workers: int | None = None,
        lent: Workers | None = None,
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
            lent: Workers of another testbed of this machine, which then work for this one too.
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
        started = lent or Workers.start(
            workers or host.cores, folder / "pools", (*PRELOAD, *preload), on_wait
        )
        memory = limits.memory_bytes
        build_limits = TaskLimits(limits.build_seconds, memory)
        builder = Builder(started, folder / "built", build_limits, limits.most_stores)
        runner = Runner(started, TaskLimits(limits.run_seconds, memory), limits.timings)
        return cls(host, started, builder, runner, owned, limits, seed, is_lent=lent is not None)

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
        self._prepare(workload)
        folder = self._workloads[workload.digest]
        assert isinstance(folder, WorkloadFolder)
        return folder

    def prepare_kernel(self, workload: KernelWorkload) -> None:
        """Write the computation of a kernel, and have a worker compute its reference result, once for each.

        Raises:
            ExecutionError: The reference result cannot be computed.
            OutputError: The disk cannot be written.
        """
        self._prepare(workload)

    def is_prepared(self, workload: KernelWorkload) -> bool:
        """Return whether a kernel has its reference result."""
        return workload.digest in self._complete

    def _prepare(self, workload: Workload | KernelWorkload) -> None:
        if workload.digest in self._complete:
            return
        path = self._given(workload)
        match workload:
            case Workload(expected=None):
                add_reference(self.workers.runner, path, self.limits.run_seconds)
            case KernelWorkload():
                self._add_kernel_reference(path)
        self._complete.add(workload.digest)

    def _add_kernel_reference(self, path: Path) -> None:
        limits = TaskLimits(self.limits.reference_seconds)
        failure = self.workers.built(self.workers.start_build(add_kernel_reference, (path,), limits))
        if failure is not None:
            raise ExecutionError(f"the reference result of a kernel cannot be computed: {failure.message}")

    def _given(self, workload: Workload | KernelWorkload) -> Path:
        """Write the files of a workload that builds need: all but the reference result."""
        if workload.digest not in self._workloads:
            parent = self.folder.path / "workloads"
            self._workloads[workload.digest] = (
                workload.write(parent, self.seed)
                if isinstance(workload, KernelWorkload)
                else WorkloadFolder.write(workload, parent, self.seed, silent, self._constants)
            )
        return self._workloads[workload.digest].path

    @contextlib.contextmanager
    def building(self, inputs: Sequence[AnyInput]) -> Iterator[None]:
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
        with contextlib.closing(self._measure(inputs)) as measured:
            for item, (outcome, seconds) in zip(inputs, measured, strict=True):
                yield Measured(item, outcome, seconds)

    def measure_schedules(
        self, inputs: Sequence[ScheduleInput]
    ) -> Generator[tuple[Outcome, float], None, None]:
        """Measure schedules of kernels; yield their outcomes in order, with the seconds of each.

        Raises:
            ExecutionError, OutputError: As `prepare_kernel`.
        """
        return self._measure(inputs)

    def _measure(self, inputs: Sequence[AnyInput]) -> Generator[tuple[Outcome, float], None, None]:
        for first in range(0, len(inputs), BATCH):
            built = list(self._build(inputs[first : first + BATCH]))
            # Runs of schedules are so short that other processes wait for all of them.
            is_short = all(isinstance(item, ScheduleInput) for item, _, _ in built)
            with self.workers.running() if is_short else contextlib.nullcontext():
                for item, outcome, build_seconds in built:
                    start, result = self.clock(), outcome
                    if outcome.error is MeasureError.OK:
                        with contextlib.nullcontext() if is_short else self.workers.running():
                            result = self._run(item)
                    yield result, build_seconds + self.clock() - start

    def race(self, racers: Mapping[str, AnyInput], limits: RaceLimits) -> Raced:
        """See Testbed.race."""
        if len({item.workload.digest for item in racers.values()}) != 1:
            raise ValueError("a race has candidates of one workload")
        outcomes = [outcome for _, outcome, _ in self._build(list(racers.values()), RACE_KEPT_BYTES)]
        built = dict(zip(racers, outcomes, strict=True))
        failures = {name: outcome for name, outcome in built.items() if outcome.error is not MeasureError.OK}
        ready = {name: self._built(item) for name, item in racers.items() if name not in failures}
        if not ready:
            return Raced(None, failures)
        raced = self.runner.race(ready, limits)
        return replace(raced, failures={**failures, **raced.failures})

    def time_kernels(self, inputs: Sequence[MeasureInput], kernels: Sequence[str]) -> list[Outcome]:
        """See KernelTestbed.time_kernels."""
        outcomes = [outcome for _, outcome, _ in self._build(inputs)]
        ready = [
            self._artifact(item)
            for item, outcome in zip(inputs, outcomes, strict=True)
            if outcome.error is MeasureError.OK
        ]
        timed = iter(self.runner.time_kernels(ready, kernels) if ready else ())
        return [outcome if outcome.error is not MeasureError.OK else next(timed) for outcome in outcomes]

    def lend_workers(self) -> Workers:
        """See LendingTestbed.lend_workers."""
        return self.workers

    def artifact(self, measured: MeasureInput) -> Path | None:
        """See Testbed.artifact."""
        path = self._artifact(measured)
        return path if path.exists() else None

    def close(self) -> None:
        """See Testbed.close."""
        if not self.is_lent:
            self.workers.stop()
        self.folder.close()

    def _build(
        self, inputs: Sequence[AnyInput], kept_bytes: int = KEPT_BYTES
    ) -> Iterator[tuple[AnyInput, Outcome, float]]:
        for item in inputs:
            self._prepare(item.workload)
        with self.workers.building():
            start, timed_out_seconds = self.clock(), 0.0
            futures: dict[Path, Future[Outcome] | None] = {}
            earlier: dict[Path, float] = {}
            for item in sorted(inputs, key=_effort, reverse=True):  # no worker ends alone with a long build
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

    def _start_build(self, item: AnyInput) -> Future[Outcome] | None:
        """Start to build a candidate; None if its artifact exists already."""
        artifact = self._artifact(item)
        if artifact.exists():
            return None
        self._kept[artifact] = item.workload.digest
        return self.builder.submit(item, self._given(item.workload))

    def _run(self, item: AnyInput) -> Outcome:
        digest, key = item.workload.digest, (item.workload.digest, str(item.target))
        shortest = self._shortest_runs.get(digest)
        start = self.clock()
        best = self._best.get(key, inf)
        outcome = self.runner.run(self._built(item), self.limits.of_run(shortest), best)
        if outcome.costs:
            self._best[key] = min(best, median(outcome.costs))
        if outcome.error is MeasureError.OK:
            seconds = self.clock() - start
            self._shortest_runs[digest] = seconds if shortest is None else min(shortest, seconds)
        return outcome

    def _built(self, item: AnyInput) -> Built:
        return Built(item, self._given(item.workload), self._artifact(item))

    def _artifact(self, item: AnyInput) -> Path:
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


def _effort(item: AnyInput) -> int:
    """Return the expected effort of a build; that of programs is unknown."""
    return item.effort if isinstance(item, ScheduleInput) else 0


def _once(callback: Callable[[str], None]) -> Callable[[str], None]:
    calls: list[str] = []

    def first(text: str) -> None:
        if not calls:
            calls.append(text)
            callback(text)

    return first
