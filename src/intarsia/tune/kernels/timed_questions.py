"""Which decisions on kernels can pay, by the times of kernels within the program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Final

from intarsia.native.roofline import Roofline
from intarsia.tune.evaluator import EvaluatorOfKernels, EvaluatorWithAnswers, EvaluatorWithRoofline
from intarsia.tune.instruction import Instruction
from intarsia.tune.kernel_answers import KernelAnswers
from intarsia.tune.kernels.answer_features import choice_subject, kernel_features
from intarsia.tune.kernels.kernel_group import KernelGroup
from intarsia.tune.kernels.kernel_question import KernelQuestion
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.whole_evaluator import innermost_evaluator

LEAST_SHARE: Final = 0.01
"""Share of the program's time that a decision must be able to save to be tried: less is within the noise."""

LEAST_SAVED: Final = 0.003
"""Share of the program's time that a choice must save, kernels timed alone, to be tried on the program. Some
of them together are worth a trial."""

LESS_WORK: Final = 0.5
"""Share of the time that another algorithm is expected to save at most: F(4, 3) in place of direct sums has a
quarter of the products, and transforms beside them."""

LEAST_OF_KERNELS: Final = 0.05
"""Share of the time of its own kernels that a choice must save: the least of several rounds repeats to a few
percent on a machine that does other work as well."""

MOST_QUESTIONS: Final = 12
"""Maximum number of questions whose kernels are compiled: each choice of a kernel takes about 0.1 seconds."""


@dataclass(frozen=True)
class KernelTimes:
    """The times of a program's kernels as it is.

    Attributes:
        seconds: Seconds of the kernels of each group in one run, by key.
        groups: The groups, by key.
        roofline: Roofline of the machine, if it is known.
    """

    seconds: Mapping[str, float]
    groups: Mapping[str, KernelGroup]
    roofline: Roofline | None = None

    @property
    def whole(self) -> float:
        """Seconds of all kernels."""
        return sum(self.seconds.values())

    def most_saved(self, question: KernelQuestion) -> float:
        """Return the seconds that a question can save at most.

        No kernel is expected to beat the best rates, in operations and in bytes, of this program's kernels,
        or the roofline. With fewer operations, only the bytes limit it.
        """
        if question.has_less_work:
            seconds = [(self.seconds[key], self._seconds_of_bytes(key)) for key in question.groups]
            return sum(min(LESS_WORK * took, max(0.0, took - least)) for took, least in seconds)
        saved = sum(self.seconds[key] - self._least(key) for key in question.groups)
        return saved if question.most_saved is None else min(saved, question.most_saved)

    def _seconds_of_bytes(self, key: str) -> float:
        """Return the least seconds of a group's bytes: the roofline's, or at the rate of a faster kernel.

        A bandwidth that was measured while other programs ran is too low, like a peak. Kernels of fewer bytes
        do not show it: caches may serve them.
        """
        amount, bounds = (
            self.groups[key].bytes_moved,
            {other: self._roofline_seconds(other) for other in self.seconds},
        )
        shares = [
            self.seconds[other] / bound
            for other, bound in bounds.items()
            if bound and self.seconds[other] and self.groups[other].bytes_moved >= amount
        ]
        return bounds[key] * min(1.0, min(shares, default=1.0))

    def _roofline_seconds(self, key: str) -> float:
        group = self.groups[key]
        if self.roofline is None or not group.calls:
            return 0.0
        return group.calls * self.roofline.seconds_of_bytes(group.bytes_moved // group.calls)

    @cached_property
    def _peak(self) -> float:
        """Operations per second that no kernel exceeds: the roofline's, or those of a kernel that is faster.

        A peak that was measured while other programs ran is too low.
        """
        if self.roofline is None:
            return math.inf
        rates = [group.flop / self.seconds[key] for key, group in self.groups.items() if self.seconds[key]]
        return max(self.roofline.peak, *rates)

    def _least(self, key: str) -> float:
        if not self.seconds[key]:
            return 0.0
        group = self.groups[key]
        bounds = [self._seconds_of_bytes(key), group.flop / self._peak]
        bounds += [
            amount * self.seconds[other] / best
            for amount, (other, best) in (
                (group.flop, self._best("flop")),
                (group.bytes_moved, self._best("bytes_moved")),
            )
            if best
        ]
        return min(self.seconds[key], max(bounds, default=0.0))

    def _best(self, amount: str) -> tuple[str, int]:
        """Return the key and the amount of the group with the highest rate."""
        key = max(
            self.seconds, key=lambda key: getattr(self.groups[key], amount) / (self.seconds[key] or 1.0)
        )
        return key, getattr(self.groups[key], amount)


@dataclass(frozen=True, slots=True)
class TimedQuestions:
    """The questions that can pay.

    Attributes:
        instructions: Their instructions, those that save most first.
        skipped: Number of questions that cannot pay, or were not among the first.
        foreseen: Number of choices that did not pay on similar kernels of other models, and were not timed.
    """

    instructions: tuple[Instruction, ...] = ()
    skipped: int = 0
    foreseen: int = 0


def timed_questions(
    questions: Sequence[KernelQuestion], groups: Sequence[KernelGroup], trace: Trace, ctx: TuningContext
) -> TimedQuestions:
    """Return the questions that can pay, by the times of kernels.

    Kernels are timed where they run, in the program as it is and in one program for all first choices, one
    for all second choices, and so on: so a few builds decide about many kernels. Which questions are among
    those is predicted, by the roofline and by what the same choices have saved on similar kernels of other
    models. Without an evaluator of kernels all questions are returned, in their order.

    Args:
        questions: Questions on the program at the end of the trace.
        groups: Groups of the program.
        trace: Trace that candidates extend.
        ctx: Context of the pass.
    """
    if not questions:
        return TimedQuestions()
    evaluator, keys = ctx.evaluator, [group.key for group in groups]
    unchanged = trace.copy()
    as_it_is = (
        evaluator.time_kernels([unchanged], keys) if isinstance(evaluator, EvaluatorOfKernels) else None
    )
    if as_it_is is None or not all(map(isfinite, as_it_is[0])) or not any(as_it_is[0]):
        return TimedQuestions(tuple(question.instruction() for question in questions))
    assert isinstance(evaluator, EvaluatorOfKernels)
    inner = innermost_evaluator(evaluator)
    answers = inner.kernel_answers if isinstance(inner, EvaluatorWithAnswers) else KernelAnswers()
    times = KernelTimes(dict(zip(keys, as_it_is[0], strict=True)), {group.key: group for group in groups})
    hopeful = [_without_foreseen(question, times, answers) for question in questions]
    foreseen = sum(
        len(before.choices) - len(after.choices) for before, after in zip(questions, hopeful, strict=True)
    )
    open_questions = [question for question in hopeful if question.choices]
    payable = _payable(open_questions, times, answers)
    if payable and isinstance(inner, EvaluatorWithRoofline):
        # It is measured only where some question may pay by the rates of the program's own kernels.
        roofline = inner.roofline(max(group.threads for group in groups))
        payable = _payable(open_questions, replace(times, roofline=roofline), answers)
    skipped = len(open_questions) - len(payable)
    variants = _variants(payable, trace, ctx)
    timed = evaluator.time_kernels([unchanged, *variants], keys) if variants else None
    if timed is None:
        return TimedQuestions(tuple(question.instruction() for question in payable), skipped, foreseen)
    seconds = [dict(zip(keys, costs, strict=True)) for costs in timed]
    _keep_answers(payable, seconds, times, answers)
    instructions = _ordered(payable, seconds, sum(timed[0]))
    if instructions:
        ctx.control.renew()  # kernels timed alone have gained: the program is tried with them
    return TimedQuestions(instructions, skipped, foreseen)


def _without_foreseen(question: KernelQuestion, times: KernelTimes, answers: KernelAnswers) -> KernelQuestion:
    """Return a question without the choices that saved too little on similar kernels of other models."""
    choices = {
        name: choice
        for name, choice in question.choices.items()
        if _expected_share(question, name, times, answers) >= LEAST_OF_KERNELS
    }
    return replace(question, choices=choices)


def _expected_share(
    question: KernelQuestion, choice: str, times: KernelTimes, answers: KernelAnswers
) -> float:
    """Return the share of its kernels' time that a choice may save by what was seen; 1 if nothing was."""
    groups = [times.groups[key] for key in question.groups]
    if not groups:
        return 1.0
    expected = answers.expect(choice_subject(question, choice, groups), kernel_features(groups))
    return 1.0 if expected is None else min(1.0, expected.most)


def _keep_answers(
    questions: Sequence[KernelQuestion],
    seconds: Sequence[Mapping[str, float]],
    times: KernelTimes,
    answers: KernelAnswers,
) -> None:
    """Store what the choices have saved, for the questions of other models.

    Args:
        questions: Questions that were timed.
        seconds: Seconds of each group as it is, and in each variant.
        times: Times of the kernels, with their groups.
        answers: Answers to add to.
    """
    for question in questions:
        groups = [times.groups[key] for key in question.groups]
        before = sum(seconds[0][key] for key in question.groups)
        for choice, variant in zip(question.choices, seconds[1:], strict=False):
            after = sum(variant[key] for key in question.groups)
            subject = choice_subject(question, choice, groups)
            answers.keep(subject, kernel_features(groups), before, after)


def _payable(
    questions: Sequence[KernelQuestion], times: KernelTimes, answers: KernelAnswers
) -> list[KernelQuestion]:
    """Return the questions that can save enough by the rates and by what was learned, most first."""
    most = {question.name: _most_saved(question, times, answers) for question in questions}
    kept = [question for question in questions if most[question.name] >= LEAST_SHARE * times.whole]
    return sorted(kept, key=lambda question: -most[question.name])[:MOST_QUESTIONS]


def _most_saved(question: KernelQuestion, times: KernelTimes, answers: KernelAnswers) -> float:
    """Return the seconds that a question can save at most, by the roofline and by answers to similar ones."""
    shares = [_expected_share(question, name, times, answers) for name in question.choices]
    whole = sum(times.seconds[key] for key in question.groups)
    return min(times.most_saved(question), max(shares, default=0.0) * whole)


def _variants(questions: Sequence[KernelQuestion], trace: Trace, ctx: TuningContext) -> list[Trace]:
    """Return the program with the first choice of all questions, with the second choice, and so on."""
    variants = []
    for number in range(max((len(question.choices) for question in questions), default=0)):
        variant = trace.copy()
        for question in questions:
            names = tuple(question.choices)
            if number < len(names):
                variant.add(question.instruction(), names[number], ctx)
        variants.append(variant)
    return variants


def _ordered(
    questions: Sequence[KernelQuestion], seconds: Sequence[Mapping[str, float]], whole: float
) -> tuple[Instruction, ...]:
    """Return the questions with a choice that saves, most first, each with its choices in that order.

    Args:
        questions: Questions that were timed.
        seconds: Seconds of each group as it is, and in each variant.
        whole: Seconds of all kernels as they are.
    """
    ordered: list[tuple[float, Instruction]] = []
    for question in questions:
        before = sum(seconds[0][key] for key in question.groups)
        saved = {
            name: before - sum(variant[key] for key in question.groups)
            for name, variant in zip(question.choices, seconds[1:], strict=False)
        }
        least = max(LEAST_SAVED * whole, LEAST_OF_KERNELS * before)
        kept = sorted((name for name, gain in saved.items() if gain >= least), key=lambda name: -saved[name])
        if kept:
            ordered.append((saved[kept[0]], question.instruction(kept)))
    return tuple(instruction for _, instruction in sorted(ordered, key=lambda item: -item[0]))
