"""One contest of toolchains over a whole model: compile, verify, measure, choose."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from intarsia.build import build
from intarsia.ir import IRModule
from intarsia.measure.compare_outputs import GateReport
from intarsia.measure.gate import SMALL, Gate, run_arrays
from intarsia.measure.interleaved import Comparison, Round, time_interleaved
from intarsia.measure.timing import TimingPolicy
from intarsia.measure.work import random_operators, work_of
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.errors import (
    CompileError,
    ExecutionError,
    IntarsiaError,
    MissingToolchainError,
    UnsupportedModelError,
    VerificationError,
)
from intarsia.target import Target
from intarsia.tune.records import CandidateRecord, Progress, Stage, Status

HOPELESS = 20.0
"""A candidate that takes this many times as long as the fastest one is not measured further."""

FIRST_CALLS = 3
"""Calls after the first one, of which the fastest decides who is hopeless: a single one may be disturbed."""

SHORT = 0.1
"""Seconds: a call of the reference that took longer is not repeated to see whether it was disturbed."""

REFERENCE = "reference"

Array = npt.NDArray[Any]


@dataclass(slots=True)
class _Candidate:
    """What is known of one candidate so far."""

    target: Target
    status: Status = Status.MEASURED
    reason: str = ""
    executable: Executable | None = None
    compile_seconds: float | None = None
    gate: GateReport | None = None
    call_seconds: float | None = None
    wrong_outputs: tuple[Array, ...] | None = None

    @property
    def name(self) -> str:
        """How tables call it: the toolchain, with the options that the target sets."""
        options = " ".join(f"{key}={value}" for key, value in self.target.options)
        return f"{self.target.toolchain} {options}".strip()

    @property
    def may_win(self) -> bool:
        """Whether it is still in the contest."""
        return self.executable is not None and self.status is Status.MEASURED

    def drop(self, status: Status, reason: str) -> None:
        """Take it out of the contest."""
        self.status, self.reason, self.executable = status, reason, None


class Contest:
    """Candidates for a module, and what became of them.

    Args:
        module: A program without a chosen toolchain.
        inputs: What to run it on, by parameter name.
        targets: The candidates.
        report: Told what is being done.
    """

    def __init__(
        self,
        module: IRModule,
        inputs: Mapping[str, Array],
        targets: Sequence[Target],
        report: Callable[[Progress], object],
    ) -> None:
        self._module = module
        self._inputs = inputs
        self._report = report
        self._candidates = [_Candidate(target) for target in targets]
        self._comparison: Comparison | None = None
        self._winner = ""
        report(Progress(Stage.REFERENCE))
        self.gate = Gate.for_module(module, inputs)

    def screen(self) -> dict[str, Executable]:
        """Compile and verify the candidates; those that are right and not hopeless, fastest first call first.

        Raises:
            UnsupportedModelError: No candidate runs the model; the message says why for each.
            VerificationError: Those that run it compute something else than the reference.
        """
        for position, candidate in enumerate(self._candidates):
            done = position / len(self._candidates)
            self._report(Progress(Stage.COMPILE, candidate.name, done))
            self._compile(candidate)
            if candidate.may_win:
                self._report(Progress(Stage.VERIFY, candidate.name, done))
                self._verify(candidate)
        self._tell_agreement()
        return self._finalists()

    def decide(self, seconds: float, seed: int) -> Executable:
        """Hold the whole contest: screen, then measure the finalists interleaved.

        Args:
            seconds: Budget for measuring all candidates.
            seed: Of the order of measurement.

        Raises:
            UnsupportedModelError: No candidate runs the model.
            VerificationError: Those that run it compute something else than the reference.
        """
        finalists = self.screen()
        calls = {name: _caller(executable, self._inputs) for name, executable in finalists.items()}
        policy = TimingPolicy(repeats=100, max_seconds=seconds / len(calls), seed=seed)
        self._comparison = time_interleaved(calls, policy, on_round=self._on_round)
        self._report(Progress(Stage.MEASURE, "", 1.0))
        timings = self._comparison.timings
        for name in sorted(finalists, key=lambda name: timings[name].median):
            if self._is_still_right(name, finalists[name]):
                self._winner = name
                return finalists[name]
        raise self._nothing_right()

    def _is_still_right(self, name: str, executable: Executable) -> bool:
        """Check the result again after thousands of calls, which reuse the same buffers."""
        report = self.gate.check(run_arrays(executable, self._inputs))
        if not report.passed:
            candidate = next(item for item in self._candidates if item.name == name)
            candidate.drop(Status.WRONG, f"after many calls: {report.message}")
        return report.passed

    def records(self) -> tuple[CandidateRecord, ...]:
        """All candidates: the winner, then the measured ones by latency, then the others."""
        records = map(self._record, self._candidates)
        return tuple(sorted(records, key=_rank))

    def _compile(self, candidate: _Candidate) -> None:
        if candidate.target.toolchain == REFERENCE and self._reference_is_hopeless():
            candidate.drop(Status.SLOW, "not tried: it takes far too long on a model of this size")
            return
        known = self.gate.run_for(candidate.target)
        if known is not None:
            candidate.executable, candidate.compile_seconds = known.executable, known.compile_seconds
            return
        start = time.perf_counter()
        try:
            candidate.executable = build(partition_whole(self._module, candidate.target))
        except MissingToolchainError as error:
            candidate.drop(Status.UNAVAILABLE, _sentence(error))
        except (CompileError, UnsupportedModelError) as error:
            candidate.drop(Status.UNSUPPORTED, _sentence(error))
        except Exception as error:  # a toolchain is foreign code: it loses its candidate, never the run
            candidate.drop(Status.FAILED, f"{type(error).__name__}: {error}")
        else:
            candidate.compile_seconds = time.perf_counter() - start

    def _reference_is_hopeless(self) -> bool:
        return len(self._candidates) > 1 and work_of(self._module).multiply_adds > SMALL

    def _verify(self, candidate: _Candidate) -> None:
        assert candidate.executable is not None
        known = self.gate.run_for(candidate.target)
        try:
            outputs = known.outputs if known else tuple(run_arrays(candidate.executable, self._inputs))
            candidate.gate = self.gate.check(outputs)
            if known and known.call_seconds > SHORT:
                candidate.call_seconds = known.call_seconds
            else:
                candidate.call_seconds = min(
                    self._timed_call(candidate.executable) for _ in range(FIRST_CALLS)
                )
        except ExecutionError as error:
            candidate.drop(Status.FAILED, _sentence(error))
            return
        except Exception as error:  # as when compiling
            candidate.drop(Status.FAILED, f"{type(error).__name__}: {error}")
            return
        if not candidate.gate.passed:
            candidate.drop(Status.WRONG, candidate.gate.message)
            candidate.wrong_outputs = outputs

    def _tell_agreement(self) -> None:
        """Say of wrong candidates that agree with each other that the reference may be what is wrong."""
        wrong = {
            str(item.target.toolchain): item for item in self._candidates if item.wrong_outputs is not None
        }
        pair = self.gate.agreeing({name: item.wrong_outputs or () for name, item in wrong.items()})
        for name in pair or ():
            other = next(each for each in pair or () if each != name)
            wrong[name].reason += f"; {other} agrees with it, so that the reference may be wrong"
        for item in wrong.values():
            item.wrong_outputs = None

    def _timed_call(self, executable: Executable) -> float:
        start = time.perf_counter()
        executable.run_flat(**self._inputs)
        return time.perf_counter() - start

    def _finalists(self) -> dict[str, Executable]:
        right = [item for item in self._candidates if item.may_win]
        if not right:
            raise self._nothing_right()
        fastest = min(item.call_seconds or 0.0 for item in right)
        for item in right:
            ratio = (item.call_seconds or 0.0) / max(fastest, 1e-9)
            if ratio > HOPELESS:
                item.drop(Status.SLOW, f"a call took {ratio:.0f} times as long as the fastest candidate's")
        ordered = sorted(right, key=lambda item: item.call_seconds or 0.0)
        return {item.name: item.executable for item in ordered if item.executable is not None}

    def _nothing_right(self) -> VerificationError | UnsupportedModelError:
        fates = "; ".join(f"{item.name}: {item.status.value}: {item.reason}" for item in self._candidates)
        message = f"no candidate computes the model right: {fates}"
        if not any(item.status is Status.WRONG for item in self._candidates):
            return UnsupportedModelError(message)
        drawn = random_operators(self._module)
        reason = f"the model draws random numbers ({', '.join(drawn)}), so no result can be checked"
        return VerificationError(message, help=reason if drawn else "")

    def _on_round(self, done: Round) -> None:
        self._report(Progress(Stage.MEASURE, "", done.fraction))

    def _record(self, item: _Candidate) -> CandidateRecord:
        timings = self._comparison.timings if self._comparison else {}
        measured = self._comparison is not None and item.name in timings
        return CandidateRecord(
            name=item.name,
            target=str(item.target),
            status=item.status,
            reason=item.reason,
            compile_seconds=item.compile_seconds,
            gate=item.gate,
            timing=timings.get(item.name),
            ratio=self._comparison.ratio(item.name, self._winner) if measured and self._comparison else None,
            chosen=item.name == self._winner,
        )


def _rank(record: CandidateRecord) -> tuple[bool, float]:
    return not record.chosen, record.timing.median if record.timing else math.inf


def _caller(executable: Executable, inputs: Mapping[str, Array]) -> Callable[[], object]:
    arrays = [inputs[item.name] for item in executable.inputs]
    return lambda: executable.run_flat(*arrays)


def _sentence(error: IntarsiaError) -> str:
    return f"{error.problem} ({error.help})" if error.help else error.problem
