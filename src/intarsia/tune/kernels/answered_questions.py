"""Questions on kernels whose choices were timed, and those that save time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.tune.instruction import Instruction
from intarsia.tune.kernels.choice_bundles import Bundle, disjoint_questions
from intarsia.tune.kernels.kernel_question import KernelQuestion

LEAST_SAVED: Final = 0.003
"""Share of the program's time that a choice must save, kernels timed alone, to be tried on the program. Some
of them together are worth a trial."""

LEAST_OF_KERNELS: Final = 0.05
"""Share of the time of its own kernels that a choice must save: the least of several rounds repeats to a few
percent on a machine that does other work as well."""


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question whose choices were timed.

    Attributes:
        question: The question.
        before: Seconds of its kernels by native's rule.
        seconds: Seconds of its kernels with each choice that was timed.
    """

    question: KernelQuestion
    before: float
    seconds: Mapping[str, float]

    @property
    def saved(self) -> dict[str, float]:
        """Seconds that each choice saves, most first."""
        saved = {name: self.before - seconds for name, seconds in self.seconds.items()}
        return dict(sorted(saved.items(), key=lambda item: -item[1]))


def answered_questions(
    questions: Sequence[KernelQuestion],
    bundles: Sequence[Bundle],
    seconds: Sequence[Mapping[str, float]],
) -> list[AnsweredQuestion]:
    """Return the questions that were timed.

    Args:
        questions: Questions.
        bundles: Choices of each variant.
        seconds: Seconds of each group as it is, and in each variant.
    """
    answered = []
    for question in questions:
        after = {
            bundle[question.name][1]: sum(variant[key] for key in question.groups)
            for bundle, variant in zip(bundles, seconds[1:], strict=True)
            if question.name in bundle
        }
        if after:
            before = sum(seconds[0][key] for key in question.groups)
            answered.append(AnsweredQuestion(question, before, after))
    return answered


def timed_names(answered: Iterable[AnsweredQuestion]) -> frozenset[tuple[str, str]]:
    """Return the names of the questions and of their choices that were timed."""
    return frozenset((item.question.name, choice) for item in answered for choice in item.seconds)


def saving_instructions(answered: Sequence[AnsweredQuestion], whole: float) -> tuple[Instruction, ...]:
    """Return the questions with a choice that saves, most first, each with its choices in that order.

    Args:
        answered: Questions that were timed.
        whole: Seconds of all kernels as they are.
    """
    saving: dict[str, tuple[AnsweredQuestion, tuple[str, ...]]] = {}
    for item in answered:
        least = max(LEAST_SAVED * whole, LEAST_OF_KERNELS * item.before)
        kept = tuple(name for name, gain in item.saved.items() if gain >= least)
        if kept:
            saving[item.question.name] = item, kept
    best = sorted(saving.values(), key=lambda pair: -pair[0].saved[pair[1][0]])
    chosen = disjoint_questions(item.question for item, _ in best)
    return tuple(question.instruction(saving[question.name][1]) for question in chosen)
