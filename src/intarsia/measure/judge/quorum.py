"""Vote on the expected result of a program with independent engines.

No engine is always right. onnx.reference, the definition of ONNX's operators, has bugs; a second
engine that shares code with the first proves nothing. So judges have groups, one vote each:

1. A small program is computed by onnx.reference, a large one by onnxruntime with all optimisations off.
2. The noise of the program is measured by two more runs with perturbed weights and inputs (`perturbation`).
3. A second judge of another group is checked against the first with this noise, before its own differences
   may widen it: an unchecked wrong judge would hide all mistakes like its own.
4. If they differ, further judges are called, until two of different groups agree. The others are outvoted.
5. If no two agree, nothing is proven, and no candidate passes. The word of a single judge counts only if the
   others are not installed or cannot compile the program. If one of them fails at run time, the inputs may be
   what is wrong, such as an index that is out of range.

A program with an operator that only onnxruntime has is computed by onnxruntime without optimisations alone.
A registered operator is computed by its reference function, whichever judge computes the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np

from intarsia.ir import Expr, IRModule
from intarsia.measure.judge.check_rules import exposed_values, output_checks
from intarsia.measure.judge.definition_cost import SMALL_SECONDS, definition_seconds
from intarsia.measure.judge.exposed_program import exposing
from intarsia.measure.judge.gate_report import (
    Array,
    GateReport,
    joined_report,
    outputs_text,
    structure_report,
)
from intarsia.measure.judge.judges import (
    DEFINITION,
    NATIVE,
    OPENVINO,
    UNOPTIMISED,
    Judge,
    JudgeSession,
    Results,
)
from intarsia.measure.judge.output_check import OutputCheck
from intarsia.measure.judge.perturbation import FLIPPING, perturbed_inputs, perturbed_module
from intarsia.measure.judge.reference_runs import ReferenceRuns, spread
from intarsia.measure.judge.ruling import Ruling
from intarsia.measure.judge.steps.inner_steps import forced_programs
from intarsia.measure.work import Work, work_of
from intarsia.op.opaque import OpaqueOperator, opaque_operators
from intarsia.support.callbacks import silent
from intarsia.support.errors import ExecutionError, IntarsiaError

_PERTURBED_RUNS: Final = 2
"""Number of runs with perturbed weights and inputs that measure the noise."""
_JUMPS: Final = 8.0
"""Allowed error as a multiple of the RMS change of runs with forced steps: other steps may flip."""


@dataclass(frozen=True, slots=True)
class JudgeLimits:
    """Limits of a panel, and its judges.

    Attributes:
        seconds: Seconds that onnx.reference may take for one input set, by estimate.
        is_checked: Whether a second judge has to confirm the result.
        is_by_definition: Whether the result of onnx.reference counts alone, if it is fast enough.
        left_out: Names of judges that are not called, each with the reason: they hang or crash.
    """

    seconds: float = 60.0
    is_checked: bool = True
    is_by_definition: bool = False
    left_out: tuple[tuple[str, str], ...] = ()


DEFAULT_LIMITS: Final = JudgeLimits()


@dataclass(slots=True)
class Panel:
    """The judges of a program, compiled when they are first needed; to be closed.

    Attributes:
        module: Program without marked toolchains.
        limits: Limits of the panel, and its judges.
        on_judge: Called with the name of a judge before each of its runs, and with "" after it.
    """

    module: IRModule
    limits: JudgeLimits = DEFAULT_LIMITS
    on_judge: Callable[[str], object] = silent
    _exposed: dict[str, Expr] = field(init=False)
    _work: Work = field(init=False)
    _opaque: tuple[OpaqueOperator, ...] = field(init=False)
    _sessions: dict[Judge, JudgeSession] = field(default_factory=dict, init=False)
    _noisy: dict[Judge, list[JudgeSession]] = field(default_factory=dict, init=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False)

    def __post_init__(self) -> None:
        self._exposed = exposed_values(self.module)
        self._work = work_of(self.module)
        self._opaque = opaque_operators(self.module)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def judges(self) -> tuple[Judge, ...]:
        """Return all usable judges, in the order in which they are called."""
        rest = [judge for judge in (UNOPTIMISED, OPENVINO, NATIVE) if self.can_judge(judge)]
        if UNOPTIMISED in rest and any(item.judge == UNOPTIMISED.name for item in self._opaque):
            # onnx.reference would call onnxruntime for such an operator.
            return tuple(rest)
        seconds = definition_seconds(self.module)
        if DEFINITION.name in dict(self.limits.left_out):
            return tuple(rest)
        if self.limits.is_by_definition or seconds <= min(SMALL_SECONDS, self.limits.seconds):
            return (DEFINITION, *rest)
        if seconds <= self.limits.seconds or not rest:
            return (*rest[:2], DEFINITION, *rest[2:])
        return tuple(rest)

    def ruling(self, inputs: Mapping[str, Array]) -> Ruling:
        """Decide on the right result for an input set.

        Raises:
            IntarsiaError: No judge computes it; the error of the first one.
        """
        vote = _Vote(self, inputs)
        first = vote.call_next()
        if first is None:
            raise vote.error
        noise = vote.measure_noise()
        if not self.limits.is_checked or self.limits.is_by_definition:
            return vote.ruling(first, noise)
        while (winner := vote.count(noise)) is None:
            if vote.call_next() is None:
                return vote.ruling(first, noise, is_proven=vote.is_unopposed)
        return vote.ruling(winner, noise)

    def has_refused(self, judge: Judge) -> bool:
        """Return whether a judge that was called cannot compile the program."""
        return self._session(judge).has_refused

    def run(self, judge: Judge, inputs: Mapping[str, Array]) -> Results | IntarsiaError:
        """Run a judge and return its outputs, then the exposed values."""
        self.on_judge(judge.name)
        try:
            return self._session(judge).run(inputs)
        finally:
            self.on_judge("")

    def run_perturbed(self, judge: Judge, inputs: Mapping[str, Array]) -> Iterator[Results | IntarsiaError]:
        """Run a judge several times with perturbed weights and inputs."""
        if judge not in self._noisy:
            module = self._session(judge).module
            modules = (perturbed_module(module, seed, self._noise) for seed in range(1, _PERTURBED_RUNS + 1))
            self._noisy[judge] = [self._stack.enter_context(JudgeSession(judge, item)) for item in modules]
        for seed, session in enumerate(self._noisy[judge], 1):
            moved = perturbed_inputs(inputs, seed, self._noise)
            self.on_judge(judge.name)
            try:
                results = session.run(moved)
            finally:
                self.on_judge("")
            yield results

    def run_forced(
        self, judge: Judge, inputs: Mapping[str, Array], results: Results, spreads: Sequence[Array | None]
    ) -> Iterator[Results]:
        """Run a judge with elements near a step of the program forced to the other side."""
        runs = self.runs(judge, inputs, results, spreads)
        for module in forced_programs(self.module, self._session(judge).module, runs):
            self.on_judge(judge.name)
            with JudgeSession(judge, module) as session:
                forced = session.run(inputs)
            self.on_judge("")
            if not isinstance(forced, IntarsiaError):
                yield forced

    def names(self, judge: Judge) -> tuple[str, ...]:
        """Return the outputs' names, from a judge that has run."""
        names = self._session(judge).names()
        return names[: len(names) - len(self._exposed)]

    def runs(
        self,
        judge: Judge,
        inputs: Mapping[str, Array],
        results: Results,
        spreads: Sequence[Array | None],
        slacks: Sequence[Array | None] = (),
    ) -> ReferenceRuns:
        """Return a judge's results with the noise of each, outputs apart from exposed values."""
        names = self.names(judge)
        count = len(names)
        keys = tuple(self._exposed)
        return ReferenceRuns(
            inputs=inputs,
            names=names,
            outputs=results[:count],
            spreads=tuple(spreads[:count]),
            exposed=dict(zip(keys, results[count:], strict=True)),
            exposed_spreads=dict(zip(keys, spreads[count:], strict=True)),
            slacks=tuple(slacks[:count]) or (None,) * count,
        )

    def checks(self, runs: ReferenceRuns) -> tuple[OutputCheck, ...]:
        """Return the checks of all outputs."""
        return output_checks(self.module, runs, self._work)

    def only_judge_of(self) -> tuple[str, ...]:
        """Return the names of opaque operators that only one judge has; () if there are several judges."""
        names = tuple(item.name for item in self._opaque if not item.is_defined)
        return names if len(self.judges()) == 1 else ()

    def defined(self) -> tuple[str, ...]:
        """Return the names of registered operators, which every judge computes by their references."""
        return tuple(item.name for item in self._opaque if item.is_defined)

    def can_judge(self, judge: Judge) -> bool:
        """Return whether an engine is usable, not left out, and has the opaque operators of the program."""
        if not judge.is_usable or judge.name in dict(self.limits.left_out):
            return False
        return all(item.is_defined or judge.target.toolchain in item.toolchains for item in self._opaque)

    @property
    def _noise(self) -> float:
        return FLIPPING if self._work.quantized else 0.0

    def _session(self, judge: Judge) -> JudgeSession:
        if judge not in self._sessions:
            session = JudgeSession(judge, exposing(self.module, tuple(self._exposed.values())))
            self._sessions[judge] = self._stack.enter_context(session)
        return self._sessions[judge]


class _Vote:
    """The votes about one input set."""

    def __init__(self, panel: Panel, inputs: Mapping[str, Array]) -> None:
        self.results: dict[Judge, Results] = {}
        self.error: IntarsiaError = ExecutionError("no toolchain that could judge results is usable")
        self._panel, self._inputs = panel, inputs
        self._waiting = iter(panel.judges())
        self._failed: list[tuple[str, str]] = list(panel.limits.left_out)
        self._refused: list[tuple[str, str]] = []
        self._has_failed = False
        self._slacks: Sequence[Array | None] = ()

    def call_next(self) -> Judge | None:
        """Run the next judge that computes the program; None if there is none left."""
        for judge in self._waiting:
            results = self._panel.run(judge, self._inputs)
            if not isinstance(results, IntarsiaError):
                self.results[judge] = results
                return judge
            if not self._has_failed:
                self.error, self._has_failed = results, True
            kind = self._refused if self._panel.has_refused(judge) else self._failed
            kind.append((judge.name, results.problem))
        return None

    @property
    def is_unopposed(self) -> bool:
        """Whether there is one result, and no judge has failed at run time; judges left out do not count."""
        return len(self.results) == 1 and len(self._failed) == len(self._panel.limits.left_out)

    def measure_noise(self) -> list[Array | None]:
        """Return the differences of perturbed runs from one engine's plain run, preferably onnxruntime's."""
        for judge in dict.fromkeys((UNOPTIMISED, *self.results)):
            plain_run = self.results.get(judge)
            if plain_run is None and self._panel.can_judge(judge):
                outcome = self._panel.run(judge, self._inputs)
                plain_run = None if isinstance(outcome, IntarsiaError) else outcome
            if plain_run is None:
                continue
            noisy = list(self._panel.run_perturbed(judge, self._inputs))
            if noisy and not any(isinstance(results, IntarsiaError) for results in noisy):
                runs = [results for results in noisy if not isinstance(results, IntarsiaError)]
                spreads = _spreads(plain_run, runs)
                forced = list(self._panel.run_forced(judge, self._inputs, plain_run, spreads))
                jumps = [
                    _jumps(value, [run[number] for run in forced]) for number, value in enumerate(plain_run)
                ]
                self._slacks = [None if jump is None else _JUMPS * jump for jump in jumps]
                return spreads
        return [None] * len(next(iter(self.results.values())))

    def count(self, noise: Sequence[Array | None]) -> Judge | None:
        """Return the judge with the votes of most groups, two at least, the first called if several.

        Or None.
        """
        if len(self.results) < 2:
            return None
        votes = {
            judge: len({judge.group, *(other.group for other in self._agreeing(judge, noise))})
            for judge in self.results
        }
        best = max(votes, key=votes.__getitem__)
        return best if votes[best] > 1 else None

    def ruling(self, judge: Judge, noise: Sequence[Array | None], *, is_proven: bool = True) -> Ruling:
        """Return the ruling for a judge's result."""
        panel, results = self._panel, self.results[judge]
        agreeing = self._agreeing(judge, noise)
        around = panel.runs(judge, self._inputs, results, noise, self._slacks)
        reports = {other: self._report(around, other) for other in self.results if other is not judge}
        spreads = [
            _widest(own, spread([(results[number], self.results[other][number]) for other in agreeing]))
            for number, own in enumerate(noise)
        ]
        runs = panel.runs(judge, self._inputs, results, spreads, self._slacks)
        return Ruling(
            runs=runs,
            checks=panel.checks(runs),
            judge=judge.name,
            agreeing=tuple(other.name for other in agreeing),
            difference=max((reports[other].max_rel_error for other in agreeing), default=0.0),
            outvoted=tuple(
                (other.name, report.message) for other, report in reports.items() if other not in agreeing
            ),
            failed=tuple(self._failed),
            refused=tuple(self._refused),
            is_proven=is_proven,
            opaque=panel.only_judge_of(),
            defined=panel.defined(),
        )

    def _agreeing(self, judge: Judge, noise: Sequence[Array | None]) -> tuple[Judge, ...]:
        runs = self._panel.runs(judge, self._inputs, self.results[judge], noise, self._slacks)
        others = (other for other in self.results if other is not judge)
        return tuple(other for other in others if self._report(runs, other).passed)

    def _report(self, runs: ReferenceRuns, other: Judge) -> GateReport:
        outputs = self.results[other][: len(runs.outputs)]
        return checked(self._panel.checks(runs), outputs, len(runs.outputs))


def checked(checks: Sequence[OutputCheck], outputs: Sequence[Array], count: int) -> GateReport:
    """Judge all outputs of a candidate.

    Args:
        checks: Checks that cover all outputs.
        outputs: Outputs of the candidate.
        count: Number of outputs that are expected.
    """
    if len(outputs) != count:
        return structure_report(f"the result has {outputs_text(len(outputs))}, expected {count}")
    return joined_report([check.check(outputs) for check in checks])


def _spreads(own: Results, noisy: Sequence[Results]) -> list[Array | None]:
    return [spread([(value, run[number]) for run in noisy]) for number, value in enumerate(own)]


def _jumps(own: Array, forced: Sequence[Array]) -> Array | None:
    """Return the RMS change of runs with forced steps from the plain run; None without a change."""
    off = [difference for other in forced if (difference := spread([(own, other)])) is not None]
    if not any(difference.any() for difference in off):
        return None
    squares = [np.square(difference.astype(np.float64)) for difference in off]
    return np.asarray(np.sqrt(np.mean(squares, axis=0)))


def _widest(first: Array | None, second: Array | None) -> Array | None:
    if first is None or second is None:
        return first
    return np.maximum(first, second)
