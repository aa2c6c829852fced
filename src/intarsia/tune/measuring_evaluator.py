"""What candidates cost, by building and running them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from intarsia.ir import Function, IRModule, structural_digest
from intarsia.measure.candidate_kind import AS_IT_IS, WHOLE
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureResult
from intarsia.measure.measurer import MeasureBudget, Measurer
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.tune.evaluator import FAILED, Evaluation
from intarsia.tune.trace import Trace

Metric = Callable[[Sequence[float]], float]

METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    {"median": statistics.median, "mean": statistics.fmean, "least": min}
)
"""What is made of the seconds of several runs, by name."""


@dataclass(eq=False)
class MeasuringEvaluator:
    """Measures programs on the inputs of the model that they are made of, and compares with its result.

    Programs with the same digest share a measurement: those of this run, and by way of the measurer's
    database those of earlier runs. A program that names no toolchain is given to the target's as a whole.

    Attributes:
        workload: The model, with its inputs.
        target: Who compiles what the program leaves to it.
        measurer: Builds, runs, and keeps.
        metric: One of METRICS.
        enough: So many measurements of a candidate are enough.
        budget: When no further candidate is begun; those left over have failed.

    Raises:
        UsageError: There is no such metric.
    """

    workload: Workload
    target: Target
    measurer: Measurer
    metric: str = "median"
    enough: int = 1
    budget: MeasureBudget = field(default_factory=MeasureBudget)
    _known: dict[str, Evaluation] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise UsageError(f"unknown metric {self.metric!r}", help=f"known: {', '.join(METRICS)}")

    def evaluate(self, candidates: Sequence[Trace]) -> list[Evaluation]:
        """What each costs, in order; equal programs are measured once.

        Raises:
            IntarsiaError: The model cannot be computed at all, or measuring has broken down.
        """
        digests = [structural_digest(candidate.out_mod) for candidate in candidates]
        waiting = {
            digest: candidate.out_mod
            for digest, candidate in zip(digests, candidates, strict=True)
            if digest not in self._known
        }
        self._measure(waiting)
        found = []
        for digest in digests:
            found.append(self._known[digest])
            self._known[digest] = Evaluation(self._known[digest].perf, self._known[digest].fate, is_new=False)
        return found

    def _measure(self, programs: Mapping[str, IRModule]) -> None:
        items = {digest: self._input(mod) for digest, mod in programs.items()}
        known = {digest: self.measurer.find(item, self.enough) for digest, item in items.items()}
        results = self.measurer.measure(tuple(items.values()), self.budget, self.enough)
        for (digest, item), result in zip(items.items(), results, strict=True):
            self._known[digest] = self._evaluation(result, is_new=known[digest] is None)
            self.measurer.testbed.forget(item.workload)

    def _input(self, mod: IRModule) -> MeasureInput:
        """The program with the model's inputs and result, built as it says, or as a whole."""
        folder = self.measurer.testbed.prepare(self.workload)
        workload = Workload(
            mod, self.workload.name, special_inputs=folder.inputs(), expected=folder.gate().expected
        )
        return MeasureInput(workload, self.target, AS_IT_IS if _is_partitioned(mod) else WHOLE)

    def _evaluation(self, result: MeasureResult | None, is_new: bool) -> Evaluation:
        if result is None:
            return Evaluation(FAILED, "not measured: the budget was spent", is_new=False)
        if not result.is_ok:
            return Evaluation(FAILED, f"{result.error}: {result.message}", is_new)
        return Evaluation(METRICS[self.metric](result.costs), is_new=is_new)


def _is_partitioned(mod: IRModule) -> bool:
    return any(isinstance(each, Function) and "Compiler" in each.attrs for each in mod.functions.values())
