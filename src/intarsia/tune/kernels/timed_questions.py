"""Which decisions on kernels can pay, by the times of kernels within the program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Final

from intarsia.tune.evaluator import EvaluatorOfKernels, EvaluatorWithAnswers, EvaluatorWithRoofline
from intarsia.tune.instruction import Instruction
from intarsia.tune.kernel_answers import KernelAnswers
from intarsia.tune.kernels.answer_features import choice_subject, kernel_features
from intarsia.tune.kernels.answered_questions import (
    LEAST_OF_KERNELS,
    AnsweredQuestion,
    answered_questions,
    saving_instructions,
    timed_names,
)
from intarsia.tune.kernels.choice_bundles import bundle_choices, disjoint_questions
from intarsia.tune.kernels.group_times import KernelTimes
from intarsia.tune.kernels.kernel_group import KernelGroup
from intarsia.tune.kernels.kernel_question import KernelQuestion
from intarsia.tune.kernels.time_bundles import time_bundles
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.whole_evaluator import innermost_evaluator

LEAST_SHARE: Final = 0.01
"""Share of the program's time that a decision must be able to save to be tried: less is within the noise."""

MOST_QUESTIONS: Final = 12
"""Maximum number of questions of a pass whose kernels are compiled: each choice of a kernel takes about
0.1 seconds."""

LIKELY: Final = LEAST_OF_KERNELS
"""Share of its kernels' time that a choice is expected to save where no similar kernel was seen."""


@dataclass(frozen=True, slots=True)
class QuestionLimits:
    """How many choices are timed.

    Attributes:
        questions: Maximum number of questions whose kernels are compiled.
        variants: Maximum number of programs that are built, each with one choice at most for a group.
        timed: Names of questions and choices that were timed before, which are not timed again.
    """

    questions: int = MOST_QUESTIONS
    variants: float = math.inf
    timed: frozenset[tuple[str, str]] = frozenset()


DEFAULT_LIMITS: Final = QuestionLimits()


@dataclass(frozen=True, slots=True)
class TimedQuestions:
    """The questions that can pay.

    Attributes:
        instructions: Their instructions, those that save most first.
        skipped: Number of questions that cannot pay, or were not among the first.
        foreseen: Number of choices that did not pay on similar kernels of other models, and were not timed.
        timed: Names of the questions and choices that were timed.
        failed: Texts of the choices that fail.
    """

    instructions: tuple[Instruction, ...] = ()
    skipped: int = 0
    foreseen: int = 0
    timed: frozenset[tuple[str, str]] = frozenset()
    failed: tuple[str, ...] = ()


def timed_questions(
    questions: Sequence[KernelQuestion],
    groups: Sequence[KernelGroup],
    trace: Trace,
    ctx: TuningContext,
    limits: QuestionLimits = DEFAULT_LIMITS,
) -> TimedQuestions:
    """Return the questions that can pay, by the times of kernels; of those on the same kernels the best one.

    Kernels are timed where they run, in the program as it is and in one program for all first choices, one
    for all second choices, and so on: so a few builds decide about many kernels. Which questions are among
    those is predicted, by the roofline and by what the same choices have saved on similar kernels of other
    models. Without an evaluator of kernels all questions are returned, in their order.

    Args:
        questions: Questions on the program at the end of the trace.
        groups: Groups of the program.
        trace: Trace that candidates extend.
        ctx: Context of the pass.
        limits: Limits on the number of timed choices.
    """
    questions = _without(questions, limits.timed)
    if not questions:
        return TimedQuestions()
    evaluator, keys = ctx.evaluator, [group.key for group in groups]
    unchanged = trace.copy()
    as_it_is = (
        evaluator.time_kernels([unchanged], keys) if isinstance(evaluator, EvaluatorOfKernels) else None
    )
    if as_it_is is None or not all(map(isfinite, as_it_is[0])) or not any(as_it_is[0]):
        return TimedQuestions(tuple(question.instruction() for question in disjoint_questions(questions)))
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
    skipped = max(0, len(payable) - limits.questions) + len(open_questions) - len(payable)
    likely = [_by_expectation(question, times, answers) for question in payable[: limits.questions]]
    bundles = bundle_choices(likely, limits.variants)
    timed = time_bundles(bundles, trace, ctx, evaluator, keys) if bundles else None
    if timed is None:
        instructions = tuple(question.instruction() for question in disjoint_questions(likely))
        return TimedQuestions(instructions, skipped, foreseen)
    answered = answered_questions(likely, timed.bundles, [timed.before, *timed.seconds])
    _keep_answers(answered, times, answers)
    instructions = saving_instructions(answered, sum(timed.before.values()))
    if instructions:
        ctx.control.renew()  # kernels timed alone have gained: the program is tried with them
    return TimedQuestions(instructions, skipped, foreseen, timed_names(answered), tuple(timed.failed))


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


def _expected_mean(
    question: KernelQuestion, choice: str, times: KernelTimes, answers: KernelAnswers
) -> float:
    """Return the share of its kernels' time that a choice is expected to save."""
    groups = [times.groups[key] for key in question.groups]
    expected = (
        answers.expect(choice_subject(question, choice, groups), kernel_features(groups)) if groups else None
    )
    return LIKELY if expected is None else expected.mean


def _by_expectation(question: KernelQuestion, times: KernelTimes, answers: KernelAnswers) -> KernelQuestion:
    """Return a question with the choice first that is expected to save most; equal ones keep their order."""
    shares = {name: _expected_mean(question, name, times, answers) for name in question.choices}
    names = sorted(question.choices, key=lambda name: -shares[name])
    return replace(question, choices={name: question.choices[name] for name in names})


def _keep_answers(answered: Sequence[AnsweredQuestion], times: KernelTimes, answers: KernelAnswers) -> None:
    """Store what the choices have saved, for the questions of other models.

    Args:
        answered: Questions with the seconds of their kernels.
        times: Times of the kernels, with their groups.
        answers: Answers to add to.
    """
    for item in answered:
        groups = [times.groups[key] for key in item.question.groups]
        for choice, after in item.seconds.items():
            subject = choice_subject(item.question, choice, groups)
            answers.keep(subject, kernel_features(groups), item.before, after)


def _payable(
    questions: Sequence[KernelQuestion], times: KernelTimes, answers: KernelAnswers
) -> list[KernelQuestion]:
    """Return the questions that can save enough by the rates and by what was learned, most first."""
    most = {question.name: most_saved(question, times, answers) for question in questions}
    kept = [question for question in questions if most[question.name] >= LEAST_SHARE * times.whole]
    return sorted(kept, key=lambda question: -most[question.name])


def most_saved(question: KernelQuestion, times: KernelTimes, answers: KernelAnswers) -> float:
    """Return the seconds that a question can save at most, by the roofline and by answers to similar ones."""
    shares = [_expected_share(question, name, times, answers) for name in question.choices]
    whole = sum(times.seconds[key] for key in question.groups)
    return min(times.most_saved(question), max(shares, default=0.0) * whole)


def _without(questions: Sequence[KernelQuestion], timed: frozenset[tuple[str, str]]) -> list[KernelQuestion]:
    """Return questions without the choices that were timed; none without a choice that is left."""
    left = []
    for question in questions:
        choices = {
            name: choice for name, choice in question.choices.items() if (question.name, name) not in timed
        }
        if choices:
            left.append(replace(question, choices=choices))
    return left
