"""What Collage says when nobody runs a program, to the letter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from tests.collage_costs import HOST_SPEC, REFERENCE_SPEC, acme, native
from tests.collage_programs import program

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.collage import collage
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.function_search import DEFAULT_OPTIONS, CollageOptions
from intarsia.measure.measure_result import MeasureError
from intarsia.support.errors import UnsupportedModelError

CHAIN = "def @main(%x: T) { Softmax(Relu(%x)) }"


@dataclass(eq=False)
class Refusals:
    """Each spec has one thing to say of all its candidates; the others cost a second.

    Attributes:
        messages: Message of each spec.
        seconds: Remaining seconds for estimates.
    """

    messages: Mapping[str, str]
    seconds: float = math.inf

    def estimate(self, candidates: Sequence[CandidatePartition]) -> list[Estimate]:
        return list(map(self._one, candidates))

    def settle(self, candidates: Sequence[CandidatePartition]) -> list[Estimate]:
        return self.estimate(candidates)

    def seconds_left(self) -> float:
        return self.seconds

    def _one(self, candidate: CandidatePartition) -> Estimate:
        if self.seconds <= 0:
            return Estimate(Cost.UNKNOWN)
        message = self.messages.get(candidate.spec.name)
        if message is None:
            return Estimate(Cost.value(1.0), 1.0, 1.0)
        return Estimate(Cost.INVALID, math.inf, math.inf, MeasureError.CRASH, message)


def text_of(
    estimator: Refusals,
    *specs: PartitionSpec,
    text: str = CHAIN,
    options: CollageOptions = DEFAULT_OPTIONS,
) -> str:
    with pytest.raises(UnsupportedModelError) as caught:
        collage(program(text), (*specs, HOST_SPEC), estimator, options=options)
    return str(caught.value)


def test_an_operator_that_nobody_supports() -> None:
    assert text_of(Refusals({}), acme()) == (
        "no toolchain runs all of function 'main': Softmax (acme: not supported)\n"
        "help: add a toolchain that can"
    )


def test_an_operator_that_everybody_fails_at() -> None:
    said = Refusals({"native": "the process was ended by signal 11", "reference": "", "acme": "it is wrong"})
    assert text_of(said, native(), acme(), REFERENCE_SPEC, text="def @main(%x: T) { Relu(%x) }") == (
        "no toolchain runs all of function 'main': Relu (native: the process was ended by signal 11;"
        " acme: it is wrong; reference: crash)\n"
        "help: add a toolchain that can"
    )


def test_the_operators_are_named_and_counted() -> None:
    text = "def @main(%x: T) { Exp(Abs(Neg(Sin(Cos(%x))))) }"
    assert text_of(Refusals({"reference": "it has no time"}), REFERENCE_SPEC, text=text) == (
        "no toolchain runs all of function 'main': Cos (reference: it has no time),"
        " Sin (reference: it has no time), Neg (reference: it has no time), and 2 more\n"
        "help: add a toolchain that can"
    )


def test_the_function_is_named() -> None:
    text = "def @main(%x: T) { @f(Relu(%x)) } def @f(%x: T) { Softmax(%x) }"
    assert text_of(Refusals({}), acme(), text=text).startswith(
        "no toolchain runs all of function 'f': Softmax (acme: not supported)"
    )


def test_no_time_to_check_anything() -> None:
    options = replace(DEFAULT_OPTIONS, unverified=False)
    text = "def @main(%x: T) { Abs(Relu(%x)) }"
    assert text_of(Refusals({}, 0.0), native(), acme(), text=text, options=options) == (
        "no toolchain runs all of function 'main': Relu (native: there was no time to measure it;"
        " acme: there was no time to measure it),"
        " Abs (native: there was no time to measure it; acme: not supported)\n"
        "help: give the search more time"
    )


class NoRelu(Refusals):
    """The native toolchain has no Relu."""

    def _one(self, candidate: CandidatePartition) -> Estimate:
        if candidate.spec.name == "native" and "Relu" in candidate.sub_graph.label:
            return Estimate(Cost.INVALID, math.inf, math.inf, MeasureError.COMPILE, "no Relu")
        return super()._one(candidate)


def test_conflicts_that_leave_no_cover() -> None:
    """Each operator has a toolchain, but the two must not live together."""
    options = replace(DEFAULT_OPTIONS, conflicts=frozenset({("acme", "native")}))
    text = "def @main(%x: T) { Abs(Relu(%x)) }"
    assert text_of(NoRelu({}), native(), acme(), text=text, options=options) == (
        "the candidates for function 'main' do not fit together at Abs\n"
        "help: add a toolchain, or allow toolchains together that are in conflict"
    )
