"""The interface of testbeds, which build and run candidates."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.runner import Raced
from intarsia.measure.workers import Workers
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.target import Host


@dataclass(frozen=True, slots=True)
class Measured:
    """A candidate that has been measured.

    Attributes:
        input: The candidate.
        outcome: Outcome of the measurement.
        seconds: Time that building and running took in all.
    """

    input: MeasureInput
    outcome: Outcome
    seconds: float


class Testbed(Protocol):
    """Builds and runs candidates; a bad one loses only itself."""

    @property
    def host(self) -> Host:
        """The machine that costs are of; costs of another are never used."""

    @property
    def width(self) -> int:
        """Best number of candidates for one call of `measure`."""

    @property
    def lanes(self) -> int:
        """Number of candidates that are measured in parallel; divides sums of `Measured.seconds`."""

    @property
    def on_wait(self) -> Callable[[str], None] | None:
        """Called, with the process that holds the host, if another process builds or times on this host."""

    def prepare(self, workload: Workload) -> WorkloadFolder:
        """Write the inputs and the reference result of a workload, once for each.

        Raises:
            UsageError: An input has a symbolic shape.
            IntarsiaError: Not even the reference computes the workload.
            OutputError: The disk cannot be written.
        """

    def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
        """Measure candidates; each comes as soon as it is done, in any order.

        Closing the iterator cancels the rest.

        Raises:
            IntarsiaError: As `prepare` does, or the testbed itself has broken down.
        """

    def forget(self, workload: Workload) -> None:
        """Remove the files of a workload that is not measured any more."""

    def race(self, racers: Mapping[str, MeasureInput], limits: RaceLimits) -> Raced:
        """Time candidates of one workload interleaved, by name; those that cannot be built fail.

        Raises:
            ValueError: There is no candidate, or they are of several workloads.
            IntarsiaError: As `measure`.
        """

    def artifact(self, measured: MeasureInput) -> Path | None:
        """The folder to which a raced candidate was built, if it is on this machine."""

    def close(self) -> None:
        """End all processes, remove all files."""


@runtime_checkable
class KernelTestbed(Protocol):
    """A testbed that can time native's kernels within candidates."""

    def time_kernels(self, inputs: Sequence[MeasureInput], kernels: Sequence[str]) -> list[Outcome]:
        """Time the kernels of candidates of one workload, interleaved.

        Args:
            inputs: The candidates.
            kernels: Keys of the timed kernels (`measure.kernel_times`), in the order of the costs.

        Returns:
            For each candidate an outcome whose costs are the seconds of each kernel in one run, infinite
            if it could not be run.
        """


@runtime_checkable
class LendingTestbed(Protocol):
    """A testbed that lends its processes to searches that measure something other than programs."""

    def lend_workers(self) -> Workers:
        """Return the workers, which the borrower uses as this testbed does, and does not stop."""


@runtime_checkable
class EarlyBuilder(Protocol):
    """A testbed that can build candidates before their workload has a reference result."""

    def building(self, inputs: Sequence[MeasureInput]) -> AbstractContextManager[None]:
        """Build candidates while the body of the block runs, which may prepare their workloads.

        At the end of the block all are built; `measure` uses the builds, and reports the failed ones.

        Args:
            inputs: The candidates, those that take longest first.

        Raises:
            UsageError: An input of a workload has a symbolic shape.
            OutputError: The disk cannot be written.
        """
