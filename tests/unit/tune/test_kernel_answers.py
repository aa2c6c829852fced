"""What earlier runs have learned about decisions on kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.measure.database import Database
from intarsia.tune.kernel_answers import LEAST_EVIDENCE, KernelAnswer, KernelAnswers

SUBJECT = "form: padded for Conv"
FEATURES = (20.0, 12.0, 1.0)
SHARES = st.floats(-1.0, 1.0)


def answers(*saved: float, features: tuple[float, ...] = FEATURES) -> KernelAnswers:
    return KernelAnswers({SUBJECT: [KernelAnswer(SUBJECT, features, share, "other") for share in saved]})


@given(st.lists(SHARES, min_size=2, max_size=8))
def test_equal_kernels_are_expected_to_save_the_mean(saved: list[float]) -> None:
    expected = answers(*saved).expect(SUBJECT, FEATURES)
    assert expected is not None
    assert expected.mean == pytest.approx(sum(saved) / len(saved))
    assert expected.evidence == len(saved)
    assert min(saved) - 1e-9 <= expected.mean <= expected.most


def test_little_evidence_and_other_questions_say_nothing() -> None:
    assert answers(0.5).expect(SUBJECT, FEATURES) is None
    assert answers(0.5, 0.5).expect("form: plain for Conv", FEATURES) is None
    assert answers(0.5, 0.5).expect(SUBJECT, (*FEATURES, 1.0)) is None
    assert LEAST_EVIDENCE > 1


@given(st.floats(0.0, 8.0), st.integers(2, 6))
def test_evidence_falls_with_the_distance(distance: float, count: int) -> None:
    far = answers(*[0.3] * count, features=(FEATURES[0] + distance, *FEATURES[1:]))
    expected = far.expect(SUBJECT, FEATURES)
    assert expected is None or (expected.evidence <= count and expected.mean == pytest.approx(0.3))
    if distance > 2.0:
        assert expected is None


def test_answers_of_other_models_on_this_machine_count(tmp_path: Path) -> None:
    with Database.open(tmp_path / "kept.db") as database:
        for model, after in (("first", 6.0), ("second", 8.0)):
            KernelAnswers.read(database, "here", model).keep(SUBJECT, FEATURES, 10.0, after)
        KernelAnswers.read(database, "elsewhere", "third").keep(SUBJECT, FEATURES, 10.0, 1.0)
        read = KernelAnswers.read(database, "here", "new")
        expected = read.expect(SUBJECT, FEATURES)
        assert expected is not None
        assert expected.mean == pytest.approx(0.3)
        assert expected.deviation == pytest.approx(0.1)
        assert KernelAnswers.read(database, "here", "first").expect(SUBJECT, FEATURES) is None


def test_failures_and_kernels_without_time_are_no_answers(tmp_path: Path) -> None:
    with Database.open(tmp_path / "kept.db") as database:
        kept = KernelAnswers.read(database, "here", "first")
        kept.keep(SUBJECT, FEATURES, 10.0, float("inf"))
        kept.keep(SUBJECT, FEATURES, 0.0, 1.0)
        assert KernelAnswers.read(database, "here", "new").answers == {}


def test_without_a_database_nothing_is_expected_or_kept() -> None:
    read = KernelAnswers.read(None, "here", "first")
    read.keep(SUBJECT, FEATURES, 10.0, 5.0)
    assert read.expect(SUBJECT, FEATURES) is None
