"""Candidates are built while their reference result is computed, and not a second time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from tests.unit.measure.hazards import bad_to_build, bad_to_run
from tests.unit.measure.quick_testbed import WORKLOAD, as_input, quick_testbed

from intarsia.measure.builder import Builder
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed import EarlyBuilder, LocalTestbed

pytestmark = pytest.mark.processes

RIGHT = as_input(bad_to_run(1))
ANOTHER = as_input(bad_to_run(2))
BROKEN = as_input(bad_to_build(1, "raise_error"))


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalTestbed]:
    with quick_testbed(tmp_path_factory.mktemp("early"), limit_s=20.0) as opened:
        yield opened


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[MeasureInput]:
    submitted: list[MeasureInput] = []
    submit = Builder.submit

    def recorded(self: Builder, measured: MeasureInput, workload: Path) -> Future[Outcome]:
        submitted.append(measured)
        return submit(self, measured, workload)

    monkeypatch.setattr(Builder, "submit", recorded)
    return submitted


def test_builds_begin_before_there_is_a_reference_result(
    testbed: LocalTestbed, builds: list[MeasureInput]
) -> None:
    assert isinstance(testbed, EarlyBuilder)
    with testbed.building([RIGHT, BROKEN, RIGHT]):
        assert builds == [RIGHT, BROKEN]
        testbed.prepare(WORKLOAD)
    assert testbed.artifact(RIGHT) is not None
    right, broken, again = Measurer(testbed).measure([RIGHT, BROKEN, RIGHT])
    assert builds == [RIGHT, BROKEN], "nothing is built twice"
    assert right is not None
    assert right.is_ok
    assert again == right
    assert broken is not None
    assert broken.error is MeasureError.INSTANTIATION
    assert broken.wall_seconds > 0


def test_an_early_build_counts_with_its_time(testbed: LocalTestbed, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(testbed, "clock", lambda: now)
    with testbed.building([ANOTHER]):
        testbed.prepare(WORKLOAD)
        now += 7.0
    (measured,) = testbed.measure([ANOTHER])
    assert measured.seconds == 7.0


def test_nothing_to_build_is_no_wait(testbed: LocalTestbed, builds: list[MeasureInput]) -> None:
    with testbed.building([]):
        pass
    assert builds == []
