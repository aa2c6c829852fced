"""Which choices on kernels share a program."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from intarsia.tune.choice import Choice
from intarsia.tune.kernels import KernelQuestion
from intarsia.tune.kernels.choice_bundles import bundle_choices, disjoint_questions


@st.composite
def some_questions(draw: st.DrawFn) -> list[KernelQuestion]:
    """Questions on some of six kernels, each with one to four choices."""
    shapes = draw(
        st.lists(
            st.tuples(st.frozensets(st.sampled_from("abcdef"), min_size=1, max_size=3), st.integers(1, 4)),
            max_size=8,
        )
    )
    return [
        KernelQuestion(f"question {at}", tuple(sorted(keys)), {f"choice {n}": Choice() for n in range(count)})
        for at, (keys, count) in enumerate(shapes)
    ]


@given(some_questions())
def test_each_choice_is_timed_once_and_alone_on_its_kernels(questions: list[KernelQuestion]) -> None:
    bundles = bundle_choices(questions, math.inf)
    timed = Counter((question.name, choice) for bundle in bundles for question, choice in bundle.values())
    assert timed == Counter((question.name, choice) for question in questions for choice in question.choices)
    for bundle in bundles:
        keys = Counter(key for question, _ in bundle.values() for key in question.groups)
        assert set(keys.values()) <= {1}


@given(some_questions(), st.integers(1, 3))
def test_few_bundles_hold_the_first_choices(questions: list[KernelQuestion], most: int) -> None:
    every, few = bundle_choices(questions, math.inf), bundle_choices(questions, most)
    assert few == every[:most]
    if questions:
        first = [question.name for question, choice in few[0].values() if choice == "choice 0"]
        assert first[: len(disjoint_questions(questions))] == [
            question.name for question in disjoint_questions(questions)
        ]


def test_disjoint_kernels_take_as_many_programs_as_the_most_choices() -> None:
    counts = {"a": 1, "b": 3, "c": 2}
    questions = [
        KernelQuestion(key, (key,), {f"choice {n}": Choice() for n in range(count)})
        for key, count in counts.items()
    ]
    assert [set(bundle) for bundle in bundle_choices(questions, math.inf)] == [
        {"a", "b", "c"},
        {"b", "c"},
        {"b"},
    ]
