"""Which choices on kernels are timed together in one program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from intarsia.tune.kernels.kernel_question import KernelQuestion

Bundle: TypeAlias = dict[str, tuple[KernelQuestion, str]]
"""Questions on different kernels, each with one of its choices, by the name of the question."""


def disjoint_questions(questions: Iterable[KernelQuestion]) -> list[KernelQuestion]:
    """Return the first question on each kernel: what two of them change together was not timed."""
    taken: set[str] = set()
    kept = []
    for question in questions:
        if taken.isdisjoint(question.groups):
            taken.update(question.groups)
            kept.append(question)
    return kept


def bundle_choices(questions: Sequence[KernelQuestion], most: float) -> list[Bundle]:
    """Return which choices are timed together: in each bundle one choice at most for a kernel.

    First choices are divided among bundles before second ones are. Each choice is in the first bundle with
    room for it; choices without one are left out.

    Args:
        questions: Questions, the most important first.
        most: Maximum number of bundles.

    Returns:
        The bundles: question and choice by name of the question.
    """
    bundles: list[Bundle] = []
    taken: list[set[str]] = []
    for number in range(max((len(question.choices) for question in questions), default=0)):
        for question in questions:
            choice = next(iter(list(question.choices)[number:]), None)
            if choice is None:
                continue
            at = next((at for at, keys in enumerate(taken) if keys.isdisjoint(question.groups)), len(taken))
            if at >= most:
                continue
            if at == len(taken):
                bundles.append({})
                taken.append(set())
            bundles[at][question.name] = question, choice
            taken[at].update(question.groups)
    return bundles
