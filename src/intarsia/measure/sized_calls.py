"""The calls by which a candidate is timed: one for each timed size of its symbolic dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from intarsia.measure.device_timing import device_call
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.timing.clock import MONOTONIC_CLOCK, Clock
from intarsia.measure.timing.timing import TimingPolicy, take_sample, time_function, warm_up
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.runtime.executable import Executable


@dataclass(frozen=True, slots=True)
class SizedCall:
    """A call with inputs of some sizes.

    Attributes:
        label: The sizes as text; that of a program without symbolic dimensions is "".
        weight: Share of the calls that have these sizes.
        call: Function that runs the candidate once.
        clock: Clock by which it is timed: the host's, or that of a GPU if `call` only starts its work.
    """

    label: str
    weight: float
    call: Callable[[], object]
    clock: Clock = MONOTONIC_CLOCK


def sized_calls(workload: WorkloadFolder, executable: Executable) -> tuple[SizedCall, ...]:
    """Return a call for each timed input set of a workload; the weights are 1 in all."""
    trials = [trial for trial in workload.trials() if trial.weight]
    if not trials:
        return (SizedCall("", 1.0, *_call(executable, workload.inputs())),)
    total = sum(trial.weight for trial in trials)
    return tuple(
        SizedCall(trial.label, trial.weight / total, *_call(executable, trial.inputs)) for trial in trials
    )


def _call(executable: Executable, inputs: Mapping[str, Array]) -> tuple[Callable[[], object], Clock]:
    arrays = [inputs[info.name] for info in executable.inputs]
    on_device = device_call(executable, arrays)
    return on_device or (lambda: executable.run_flat(*arrays), MONOTONIC_CLOCK)


def time_calls(calls: Sequence[SizedCall], policy: TimingPolicy) -> tuple[float, ...]:
    """Time calls one after another; return the weighted mean of their seconds, one for each repeat."""
    samples = [time_function(item.call, policy, item.clock).samples for item in calls]
    return tuple(_mean(calls, seconds) for seconds in zip(*samples, strict=False))


def _mean(calls: Sequence[SizedCall], seconds: Sequence[float]) -> float:
    return sum(item.weight * value for item, value in zip(calls, seconds, strict=True))


@dataclass(frozen=True, slots=True)
class Turns:
    """Calls that are warm, and take turns with those of other candidates.

    Attributes:
        calls: The calls.
        counts: For each, the number of calls that last as long as a sample.
        policy: Policy of the samples.
    """

    calls: tuple[SizedCall, ...]
    counts: tuple[int, ...]
    policy: TimingPolicy

    @classmethod
    def warmed_up(cls, calls: tuple[SizedCall, ...], policy: TimingPolicy) -> Turns:
        """Warm calls up."""
        return cls(calls, tuple(warm_up(item.call, policy, item.clock) for item in calls), policy)

    def take(self) -> tuple[float, tuple[float, ...]]:
        """Take one sample of each call; return their weighted mean and the seconds of each."""
        seconds = tuple(
            take_sample(item.call, count, self.policy, item.clock).seconds
            for item, count in zip(self.calls, self.counts, strict=True)
        )
        return _mean(self.calls, seconds), seconds
