"""The fault table: of each kind, 20 bad candidates among 80 good ones lose only themselves.

It goes through the whole of measuring, and each fault happens while a candidate is built and while it runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.measure.hazards import FAULTS, bad_to_build, bad_to_run
from tests.unit.measure.quick_testbed import as_input, quick_testbed
from tests.unit.measure.worker_pool.live_processes import is_alive, nothing_left_behind

from intarsia.measure.measure_input import Candidate
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer

pytestmark = pytest.mark.processes

WHILE_BUILT = {
    "raise_error": MeasureError.INSTANTIATION,
    "segfault": MeasureError.CRASH,
    "abort": MeasureError.CRASH,
    "exit_softly": MeasureError.CRASH,
    "loop": MeasureError.BUILD_TIMEOUT,
    "allocate_at_once": MeasureError.OUT_OF_MEMORY,
    "allocate_bit_by_bit": MeasureError.OUT_OF_MEMORY,
    "close_files": MeasureError.CRASH,
    "kill_own_group": MeasureError.CRASH,
    "kill_parent": MeasureError.CRASH,
    "flood": MeasureError.INSTANTIATION,
}
WHILE_RUN = {
    **WHILE_BUILT,
    "raise_error": MeasureError.RUNTIME,
    "loop": MeasureError.RUN_TIMEOUT,
    "flood": MeasureError.RUNTIME,
}
LATE = 6
"""The call of a kernel at which it is timed, after its result has been found right."""

CASES = [
    *(
        pytest.param(bad_to_build, name, {}, error, id=f"{name}, built")
        for name, error in WHILE_BUILT.items()
    ),
    *(pytest.param(bad_to_run, name, {}, error, id=f"{name}, run") for name, error in WHILE_RUN.items()),
    *(
        pytest.param(bad_to_run, name, {"at_call": LATE}, WHILE_RUN[name], id=f"{name}, timed")
        for name in ("raise_error", "segfault", "kill_parent")
    ),
]


def test_all_faults_are_in_the_table() -> None:
    assert set(WHILE_BUILT) == set(WHILE_RUN) == set(FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "fault", "conduct", "expected"), CASES)
def test_bad_candidates_lose_only_themselves(
    make: Callable[..., Candidate],
    fault: str,
    conduct: dict[str, int],
    expected: MeasureError,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table(make, fault, conduct, expected, 100, tmp_path, monkeypatch)


@pytest.mark.parametrize(("make", "fault", "conduct", "expected"), CASES[len(WHILE_BUILT) :])
def test_a_few_candidates_that_are_bad_to_run(
    make: Callable[..., Candidate],
    fault: str,
    conduct: dict[str, int],
    expected: MeasureError,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For those who cannot wait for the table; `test_measurer` has the same of building."""
    table(make, fault, conduct, expected, 10, tmp_path, monkeypatch)


def table(
    make: Callable[..., Candidate],
    fault: str,
    conduct: dict[str, int],
    expected: MeasureError,
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with nothing_left_behind():
        candidates = [
            make(number, None if number % 5 else fault, **({} if number % 5 else conduct))
            for number in range(count)
        ]
        with quick_testbed(tmp_path, limit_s=8.0 if fault == "loop" else 60.0) as testbed:
            results = Measurer(testbed).measure([as_input(candidate) for candidate in candidates])
            workers = (*testbed.workers.builders.worker_pids(), *testbed.workers.runner.worker_pids())
        for number, result in enumerate(results):
            assert result is not None
            assert result.error is (MeasureError.OK if number % 5 else expected), result.message
            assert len(result.costs) == (6 if number % 5 else 0)
            assert bool(result.message) is (number % 5 == 0)
        assert workers
        assert not any(map(is_alive, workers))
    assert not list(tmp_path.iterdir())
