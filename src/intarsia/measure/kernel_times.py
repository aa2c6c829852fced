"""The times of native's kernels within built candidates, by their fusion groups and their computations."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from intarsia.measure.candidate_task import Outcome, failure_outcome
from intarsia.measure.measure_input import Candidate, MeasureInput
from intarsia.measure.measure_result import MeasureError
from intarsia.runtime.artifact_load import load
from intarsia.runtime.kernel import Array
from intarsia.support.digest import digest_text
from intarsia.toolchain.native.kernel import NativeKernel

TIMED: Final = "kernels timed"
"""Kind of the records of kernel times; such candidates are only looked up, never instantiated."""

_WHOLE_NUMBERS: Final = "biu"
"""NumPy's kinds of booleans and integers."""
_SECONDS: Final = 1.5
"""Time for all rounds; a round more is begun before it is over."""
_LEAST_ROUNDS: Final = 2
_MOST_ROUNDS: Final = 8
_REPEATS: Final = 3
"""Runs of a candidate in a round, of which the median counts."""


def timed_inputs(inputs: Sequence[MeasureInput], keys: Sequence[str]) -> list[MeasureInput]:
    """Return the keys under which the kernel times of candidates are stored.

    They count for this set of candidates, and for these kernels.
    """
    field_key = digest_text((*keys, *(f"{item.target}:{item.candidate.digest}" for item in inputs)))
    return [
        MeasureInput(
            item.workload,
            item.target,
            Candidate(
                TIMED,
                {"kind": item.candidate.kind, "trace": item.candidate.trace, "beside": field_key},
            ),
        )
        for item in inputs
    ]


def time_kernels(artifacts: tuple[Path, ...], keys: tuple[str, ...]) -> Outcome:
    """Time the kernels of built candidates, interleaved, in the process of a worker.

    The inputs are random floating-point numbers, and zeros where they are integers: times of kernels hardly
    depend on them. Kernels run one by one, in their places among the others.

    Args:
        artifacts: Folders of built candidates.
        keys: Keys of kernels: of the group of the rules that they compute (`KernelPlan.rule_group`), or of
            their computation (`structural_key`).

    Returns:
        An outcome with one for each candidate as its parts: for each key the seconds of all its kernels
        together in one run, or the failure to load it.
    """
    with ExitStack() as stack:
        candidates: list[_TimedCandidate | Outcome] = []
        for artifact in artifacts:
            try:
                executable = stack.enter_context(load(artifact))
                candidates.append(_TimedCandidate.of(executable.kernels))
            except Exception as error:  # toolchains raise what they like
                candidates.append(failure_outcome(MeasureError.LOAD, error))
        try:
            _run_rounds([candidate for candidate in candidates if isinstance(candidate, _TimedCandidate)])
        except Exception as error:  # toolchains raise what they like
            return failure_outcome(MeasureError.RUNTIME, error)
    return Outcome(
        parts=tuple(
            candidate
            if isinstance(candidate, Outcome)
            else Outcome(costs=tuple(candidate.least.get(key, 0.0) for key in keys))
            for candidate in candidates
        )
    )


def _run_rounds(candidates: Sequence[_TimedCandidate], clock: Callable[[], float] = time.monotonic) -> None:
    begun = clock()
    for number in range(_MOST_ROUNDS):
        if number >= _LEAST_ROUNDS and clock() - begun >= _SECONDS:
            return
        for candidate in candidates:
            candidate.run_round()


@dataclass(eq=False)
class _TimedCandidate:
    """A built candidate, and the times of its kernels so far.

    Attributes:
        regions: Native's compiled regions, each with the keys of its kernels and its inputs.
        least: Least seconds over the rounds by key.
    """

    regions: Sequence[tuple[NativeKernel, Sequence[tuple[str, str]], Sequence[Array]]]
    least: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, kernels: Sequence[object]) -> _TimedCandidate:
        """Return native's kernels, with inputs; other kernels are skipped."""
        native = [kernel for kernel in kernels if isinstance(kernel, NativeKernel)]
        return cls([(kernel, kernel.call_keys, _inputs(kernel)) for kernel in native])

    def run_round(self) -> None:
        """Run all kernels some times."""
        spent: defaultdict[str, float] = defaultdict(float)
        for kernel, keys, inputs in self.regions:
            seconds = kernel.call_seconds(inputs, _REPEATS)
            for (group, computation), took in zip(keys, seconds, strict=True):
                spent[group] += took
                spent[computation] += took
        for key, took in spent.items():
            # The least of several rounds is the time that other processes disturb least.
            self.least[key] = min(took, self.least.get(key, math.inf))


def _inputs(kernel: NativeKernel) -> list[Array]:
    generator = np.random.default_rng(0)
    return [
        np.zeros(port.shape, port.dtype)
        if port.dtype.kind in _WHOLE_NUMBERS
        else generator.random(port.shape).astype(port.dtype)
        for port in kernel.params
    ]
