"""Workers: what a build or a run returns, or how its worker has failed, as a value."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.workers import TaskLimits, Workers

pytestmark = pytest.mark.processes

LIMITS = TaskLimits(30.0)


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    started = Workers.start(1, tmp_path_factory.mktemp("workers") / "pools")
    yield started
    started.stop()


def test_results_are_passed_on(workers: Workers) -> None:
    with workers.building():
        assert workers.built(workers.start_build(math.sqrt, (9.0,), LIMITS)) == 3.0
    with workers.running():
        assert workers.run(os.path.basename, (Path("a/b"),), LIMITS) == "b"


def test_failures_of_workers_are_values_of_one_kind(workers: Workers) -> None:
    short = TaskLimits(0.2)
    with workers.building():
        built = [
            workers.built(workers.start_build(os._exit, (3,), LIMITS)),
            workers.built(workers.start_build(math.sqrt, (-1.0,), LIMITS)),
            workers.built(workers.start_build(time.sleep, (30,), short)),
        ]
    with workers.running():
        ran = [workers.run(os.abort, (), LIMITS), workers.run(time.sleep, (30,), short)]
    outcomes = [each for each in (*built, *ran) if isinstance(each, Outcome)]
    assert [outcome.error for outcome in outcomes] == [
        MeasureError.CRASH,
        MeasureError.UNKNOWN,
        MeasureError.BUILD_TIMEOUT,
        MeasureError.CRASH,
        MeasureError.RUN_TIMEOUT,
    ]
