"""Costs by measuring: each candidate as a program of its own, known ones from the database."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.costs.captured_values import CapturedValues
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.planned_devices import spans_devices
from intarsia.collage.sub_graph import SubGraph, extract_module
from intarsia.collage.sub_graph.constant_placement import ConstantPlacement
from intarsia.collage.sub_graph.outline import outline
from intarsia.ir import NO_ATTRS, IRModule
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.device_timing import is_timed_on_device, timed_on_device
from intarsia.measure.inputs import random_inputs
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.measurer import Measurer
from intarsia.measure.timing.median_interval import median_interval
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target

SETTLED: Final = 2
"""Measurements after which a candidate on which the choice hangs is not measured again."""

_LEAST_SHARE = 0.1
"""What is left of a cost, at least, when what every run costs is taken off."""


@dataclass(eq=False)
class MeasuredCostEstimator:
    """Measures candidates by themselves.

    On a GPU, in a program on several devices, they are timed without copies, which the program has as well.
    Candidates of equal structure, shapes and target cost the same, whatever their weights: one is measured.
    A candidate is checked against the program's own values where these were captured.

    Attributes:
        measurer: Measurer, with the database of earlier measurements.
        mod: The program that the candidates are of.
        values: Values within it.
        run_seconds: Time of every run of a program besides its kernels.
        seconds: Time for measuring; when it is over, costs stay UNKNOWN.
    """

    measurer: Measurer
    mod: IRModule
    values: CapturedValues
    run_seconds: float = 0.0
    seconds: float = math.inf
    _estimates: dict[tuple[str, str], Estimate] = field(default_factory=dict)
    _remeasured: set[tuple[str, str]] = field(default_factory=set)
    _bodies: dict[tuple[str, str], SubGraph] = field(default_factory=dict)
    """What is measured for all candidates of a key."""
    _begun: float = field(init=False)
    _is_on_devices: bool = field(init=False)

    def __post_init__(self) -> None:
        self._is_on_devices = spans_devices(self.mod)
        self._begun = self.measurer.spent

    def settle(self, candidates: Sequence[CandidatePartition]) -> list[Estimate]:
        """See CostEstimator.settle: each is measured a second time, if it was measured once."""
        items = {_key(item): item for item in map(self._input, candidates) if isinstance(item, MeasureInput)}
        self._measure([item for key, item in items.items() if self._is_open(key)], SETTLED)
        self._remeasured.update(items)
        return self.estimate(candidates)

    def _is_open(self, key: tuple[str, str]) -> bool:
        """Whether a second measurement could change what is known."""
        estimate = self._estimates.get(key)
        return key not in self._remeasured and (estimate is None or estimate.cost != Cost.INVALID)

    def seconds_left(self) -> float:
        """See CostEstimator.seconds_left."""
        return self.seconds - (self.measurer.spent - self._begun)

    def estimate(self, candidates: Sequence[CandidatePartition]) -> list[Estimate]:
        """See CostEstimator.estimate."""
        inputs = [self._input(candidate) for candidate in candidates]
        wanted: dict[tuple[str, str], MeasureInput] = {}
        for candidate, item in zip(candidates, inputs, strict=True):
            if isinstance(item, MeasureInput) and _key(item) not in self._estimates:
                complaint = candidate.spec.validate(item.workload.module["main"])
                if complaint:
                    self._estimates[_key(item)] = _invalid(MeasureError.COMPILE, complaint)
                else:
                    wanted.setdefault(_key(item), item)
        self._measure(list(wanted.values()), 1)
        return [self._answer(item) if isinstance(item, MeasureInput) else item for item in inputs]

    def _answer(self, item: MeasureInput) -> Estimate:
        """Estimates that exist already; a caller that finds none has to measure."""
        estimate = self._estimates.get(_key(item))
        if estimate is None:
            return Estimate(Cost.UNKNOWN, message="there was no time to measure it")
        self._estimates[_key(item)] = replace(estimate, was_known=True)
        return estimate

    def _measure(self, items: Sequence[MeasureInput], enough: int) -> None:
        results = {_key(item): self.measurer.find(item, enough) for item in items}
        for key, result in results.items():
            if result is not None:
                self._estimates[key] = self._estimate(result, key, was_known=True)
        self._measure_batches([item for item in items if results[_key(item)] is None], enough)

    def _measure_batches(self, left: Sequence[MeasureInput], enough: int) -> None:
        width = self.measurer.testbed.width
        for first in range(0, len(left), width):
            if self.seconds_left() <= 0 or self.measurer.should_stop():
                return
            valued = map(self._with_values, left[first : first + width])
            batch = [item for item in valued if self._is_prepared(item)]
            seconds = max(0.0, self.seconds_left())
            results = self.measurer.measure(batch, seconds=seconds, enough=enough)
            for item, result in zip(batch, results, strict=True):
                if result is not None:
                    self._estimates[_key(item)] = self._estimate(result, _key(item))
                self.measurer.testbed.forget(item.workload)

    def _is_prepared(self, item: MeasureInput) -> bool:
        workload, main = item.workload, item.workload.module["main"]
        try:
            if not all(param.name in workload.special_inputs for param in main.params):
                random_inputs(main)
        except IntarsiaError as error:
            text = f"it cannot be measured by itself: {error.problem}"
            self._estimates[_key(item)] = _invalid(MeasureError.UNKNOWN, text)
            return False
        try:
            self.measurer.testbed.prepare(workload)
        except IntarsiaError as error:
            text = f"there is no reference result: {error.problem}"
            self._estimates[_key(item)] = _invalid(MeasureError.INSTANTIATION, text)
            return False
        return True

    def _input(self, candidate: CandidatePartition) -> MeasureInput | Estimate:
        body = _unwrapped(candidate.sub_graph)
        try:
            module = extract_module(body, self.mod)
        except IntarsiaError as error:
            return _invalid(MeasureError.INSTANTIATION, error.problem)
        workload = Workload(module, body.label, by_structure=True, is_checked=False)
        target = candidate.spec.target
        item = MeasureInput(workload, timed_on_device(target) if self._is_on_devices else target, WHOLE)
        self._bodies.setdefault(_key(item), body)
        return item

    def _with_values(self, item: MeasureInput) -> MeasureInput:
        """With the program's own values as inputs and as expected results, where these were captured."""
        outlined = outline(self._bodies[_key(item)], NO_ATTRS, ConstantPlacement.BOUND)
        pairs = zip(item.workload.module["main"].params, outlined.arguments, strict=True)
        captured = self.values.arrays
        special = {param.name: captured[expr] for param, expr in pairs if expr in captured}
        is_captured = len(special) == len(outlined.arguments) and all(
            expr in captured for expr in outlined.outputs
        )
        expected = tuple(captured[expr] for expr in outlined.outputs) if is_captured else None
        return replace(item, workload=replace(item.workload, special_inputs=special, expected=expected))

    def _estimate(self, result: MeasureResult, key: tuple[str, str], *, was_known: bool = False) -> Estimate:
        if not result.is_ok:
            return replace(_invalid(result.error, result.message), was_known=was_known)
        if not result.costs:
            return replace(_invalid(MeasureError.UNKNOWN, "its measurement has no cost"), was_known=was_known)
        low, high = median_interval(result.costs)
        run_seconds = 0.0 if is_timed_on_device(Target(key[1])) else self.run_seconds
        low, cost, high = (_without(run_seconds, seconds) for seconds in (low, result.cost, high))
        return Estimate(Cost.value(cost), low, high, was_known=was_known)


def _without(run_seconds: float, seconds: float) -> float:
    """Return what a part costs besides what every run costs."""
    return seconds if math.isinf(seconds) else max(seconds - run_seconds, _LEAST_SHARE * seconds)


def _invalid(error: MeasureError, message: str) -> Estimate:
    """Of a candidate that need not be measured."""
    return Estimate(Cost.INVALID, math.inf, math.inf, error, message, was_known=True)


def _unwrapped(sub_graph: SubGraph) -> SubGraph:
    """The sub-graph without the function around all of it: what is measured is that function's body."""
    outer = sub_graph.nested
    if len(outer) == 1 and outer[0].sub_graph.inside == sub_graph.inside:
        inner = outer[0]
        return _unwrapped(inner.sub_graph) if "Composite" not in inner.attrs else sub_graph
    return sub_graph


def _key(item: MeasureInput) -> tuple[str, str]:
    return item.workload.digest, str(item.target)
