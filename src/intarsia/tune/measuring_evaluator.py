"""The cost of candidates by building and running them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final
from weakref import WeakKeyDictionary

from intarsia.ir import Function, IRModule, structural_digest
from intarsia.measure.candidate_kind import AS_IT_IS, WHOLE, instantiate
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureResult
from intarsia.measure.measurer import Measurer
from intarsia.native.machine.isa import Isa
from intarsia.native.roofline import Roofline
from intarsia.support.errors import CompileError, UsageError
from intarsia.target import Target
from intarsia.tune.evaluator import FAILED, Evaluation
from intarsia.tune.kernel_answers import KernelAnswers
from intarsia.tune.placed_candidate import with_placement
from intarsia.tune.run_control import RunControl
from intarsia.tune.trace import Trace
from intarsia.tune.tuned_candidate import Decision, decisions_and_base, decisions_of, tuned_candidate

Metric = Callable[[Sequence[float]], float]

METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    {"median": statistics.median, "mean": statistics.fmean, "least": min}
)
"""Statistics over the seconds of several runs, by name."""


@dataclass(eq=False)
class MeasuringEvaluator:
    """Measures programs on the inputs of their model, and checks their results against the model's.

    Programs with the same digest share a measurement: within this run, and through the measurer's database
    with earlier runs. A program that names no toolchain is compiled for the target as a whole.

    Workers get the programs themselves or, with `by_decisions`, the model and the decisions. Then the
    candidates equal those of a contest of the whole model, which shares their measurements. But workers must
    be able to import the transformations: from installed packages, not from a script.

    Attributes:
        workload: The model, with its inputs.
        target: Target of functions that the program assigns to no toolchain.
        measurer: Builder and runner of candidates, with the database.
        metric: Name in METRICS.
        enough: Number of measurements of a candidate that suffice.
        control: Budget of seconds and trials; candidates beyond it count as failed.
        by_decisions: Whether workers apply the decisions, rather than get the programs.

    Raises:
        UsageError: There is no such metric.
    """

    workload: Workload
    target: Target
    measurer: Measurer
    metric: str = "median"
    enough: int = 1
    control: RunControl = field(default_factory=RunControl)
    by_decisions: bool = False
    _evaluations: dict[str, Evaluation] = field(default_factory=dict, init=False)
    _parts: dict[str, MeasuringEvaluator] = field(default_factory=dict, init=False)
    _answers: KernelAnswers | None = field(default=None, init=False)
    _inputs: dict[str, MeasureInput] = field(default_factory=dict, init=False)
    """The form in which a program was measured, by its digest: a placement can be written in two ways."""
    _digests: WeakKeyDictionary[IRModule, str] = field(default_factory=WeakKeyDictionary, init=False)

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise UsageError(f"unknown metric {self.metric!r}", help=f"known: {', '.join(METRICS)}")

    def evaluate(self, candidates: Sequence[Trace]) -> list[Evaluation]:
        """Measure candidates; equal programs are measured once. Evaluations in the candidates' order.

        Raises:
            IntarsiaError: The model cannot be computed at all, or measuring has broken down.
        """
        digests = [self._digest(candidate.out_mod) for candidate in candidates]
        waiting = {
            digest: candidate
            for digest, candidate in zip(digests, candidates, strict=True)
            if digest not in self._evaluations
        }
        if waiting:
            self._measure(waiting)
        evaluations = []
        for digest in digests:
            evaluations.append(self._evaluations[digest])
            self._evaluations[digest] = replace(self._evaluations[digest], is_new=False, is_first=False)
        return evaluations

    def time_kernels(
        self, candidates: Sequence[Trace], kernels: Sequence[str]
    ) -> list[tuple[float, ...]] | None:
        """See EvaluatorOfKernels.time_kernels; charges the budget."""
        if self.control.is_spent:
            return None
        results = self.measurer.time_kernels([self.input(candidate) for candidate in candidates], kernels)
        if results is None:
            return None
        failed = (FAILED,) * len(kernels)
        return [result.costs if result.is_ok and result.costs else failed for result in results]

    def roofline(self, threads: int) -> Roofline:
        """See EvaluatorWithRoofline.roofline; kernels are timed on this machine."""
        return Roofline.measured(Isa.host(), threads)

    @property
    def kernel_answers(self) -> KernelAnswers:
        """See EvaluatorWithAnswers.kernel_answers; they are read once."""
        if self._answers is None:
            measurer = self.measurer
            self._answers = KernelAnswers.read(
                measurer.database, measurer.testbed.host.digest, self.workload.digest
            )
        return self._answers

    def learn(self, item: MeasureInput, result: MeasureResult) -> None:
        """Store the result of a candidate of this model that was measured before.

        One that its toolchain refuses already as a program has no key, and needs none: no trace leads to it.
        """
        try:
            mod = instantiate(item.workload.module, item.target, item.candidate)
        except CompileError:
            return
        evaluation = replace(self._evaluation(result, is_new=False), is_first=False)
        digest = self._digest(mod)
        self._evaluations.setdefault(digest, evaluation)
        self._inputs.setdefault(digest, item)

    def for_part(self, mod: IRModule) -> MeasuringEvaluator:
        """Return an evaluator of candidates for a part of the model, on random inputs and the same budget.

        Equal parts share measurements.

        Args:
            mod: The part, as a program; its parameters are tensors of static shape.
        """
        digest = self._digest(mod)
        if digest not in self._parts:
            name = f"part of {self.workload.name or 'a model'}"
            workload = Workload(mod, name, settings=self.workload.settings)
            self._parts[digest] = replace(self, workload=workload, by_decisions=False)
        return self._parts[digest]

    def input(self, candidate: Trace) -> MeasureInput:
        """Return the measurement input of a candidate: the one with which it was measured if there is one."""
        mod = candidate.out_mod
        base = AS_IT_IS if _is_partitioned(mod) else WHOLE
        if self.by_decisions and candidate.in_mod is self.workload.module:
            decided = tuned_candidate(decisions_of(candidate), base)
            item = with_placement(MeasureInput(self.workload, self.target, decided))
            measured = self._inputs.get(self._digest(mod), item)
            return measured if _decisions(measured) == _decisions(item) else item
        folder = self.measurer.testbed.prepare(self.workload)
        workload = Workload(
            mod,
            self.workload.name,
            special_inputs=folder.inputs(),
            expected=folder.gate().expected,
            settings=self.workload.settings,
        )
        return MeasureInput(workload, self.target, base)

    def _digest(self, mod: IRModule) -> str:
        """Return the digest of a program, cached by identity."""
        if mod not in self._digests:
            self._digests[mod] = structural_digest(mod)
        return self._digests[mod]

    def _measure(self, waiting: Mapping[str, Trace]) -> None:
        items = {digest: self.input(candidate) for digest, candidate in waiting.items()}
        is_stored = {digest: self.measurer.knows(item, self.enough) for digest, item in items.items()}
        control, inputs = self.control, tuple(items.values())
        seconds, trials = control.seconds_left, control.trials_left
        results = self.measurer.measure(inputs, seconds=seconds, trials=trials, enough=self.enough)
        self._inputs.update(items)
        for (digest, item), result in zip(items.items(), results, strict=True):
            self._evaluations[digest] = self._evaluation(result, is_new=not is_stored[digest])
            if item.workload is not self.workload:
                # The workload exists for this candidate only: do not keep its inputs on disk.
                self.measurer.testbed.forget(item.workload)

    def _evaluation(self, result: MeasureResult | None, is_new: bool) -> Evaluation:
        if result is None:
            return Evaluation(FAILED, "not measured: the budget was spent", is_new=False, is_first=False)
        if not result.is_ok:
            return Evaluation(FAILED, f"{result.error}: {result.message}", is_new, is_first=True)
        if not result.costs:
            return Evaluation(FAILED, "its measurement has no cost", is_new, is_first=True)
        return Evaluation(METRICS[self.metric](result.costs), is_new=is_new, is_first=True)


def _decisions(item: MeasureInput) -> tuple[Decision, ...]:
    """Return the decisions of a candidate before its placement."""
    return decisions_and_base(item.candidate)[0]


def _is_partitioned(mod: IRModule) -> bool:
    return any(
        isinstance(function, Function) and "Compiler" in function.attrs for function in mod.functions.values()
    )
