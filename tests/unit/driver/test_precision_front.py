"""The front of a run: which programs are on it, and how they are saved."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.quantised_programs import residual_network

import intarsia as ia
from intarsia.cli.reports.front_table import front_lines, front_tables
from intarsia.driver.precision_front import ROUNDING, FrontPoint, front_of, points_within, save_front
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.inputs import random_inputs
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.timing.timing import Timing
from intarsia.runtime.self_test import SelfTest
from intarsia.target import Target
from intarsia.tune.contest.candidate_record import CandidateRecord, Status
from intarsia.tune.contest.entrant import Entrant
from intarsia.tune.quantise.program_runner import running_program

MOD = residual_network()
INPUT = MeasureInput(Workload(MOD), Target.for_toolchain("reference"), WHOLE)
COSTS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=8)


def records_of(costs: list[tuple[float, float]], winner: int = 0) -> list[CandidateRecord]:
    return [
        CandidateRecord(
            f"c{number}",
            "cpu -toolchain=reference",
            Status.MEASURED,
            max_error=error,
            timing=Timing((seconds,), 1),
            chosen=number == winner,
        )
        for number, (seconds, error) in enumerate(costs)
    ]


def front(records: list[CandidateRecord]) -> tuple[FrontPoint, ...]:
    return front_of([Entrant(record.name, INPUT) for record in records], records)


@given(COSTS)
def test_no_program_is_faster_and_more_exact_than_one_of_the_front(costs: list[tuple[int, int]]) -> None:
    """Against the definition, over all pairs; the winner is a fastest program."""
    floats = [(float(seconds), error * 0.01) for seconds, error in costs]
    winner = min(range(len(floats)), key=lambda number: floats[number][0])
    points = front(records_of(floats, winner))
    assert points[0].chosen
    errors = [point.error for point in points]
    assert errors == sorted(set(errors), reverse=True)
    for seconds, error in floats:
        assert any(point.seconds <= seconds and point.error <= error for point in points)
    for point in points:
        better = [
            (seconds, error)
            for seconds, error in floats
            if seconds <= point.seconds
            and error <= point.error
            and (seconds, error) != (point.seconds, point.error)
        ]
        assert not better or (point.chosen and all(seconds == point.seconds for seconds, _ in better))


def test_what_was_not_measured_or_is_wrong_is_not_on_the_front() -> None:
    wrong = CandidateRecord("w", "cpu", Status.WRONG, max_error=0.5, timing=Timing((0.1,), 1))
    refused = CandidateRecord("r", "cpu", Status.UNSUPPORTED)
    points = front([*records_of([(1.0, 0.1), (2.0, ROUNDING / 2), (3.0, ROUNDING / 9)]), wrong, refused])
    assert [point.name for point in points] == ["c0", "c1"], "differences below rounding count for nothing"


def test_a_median_below_that_of_the_winner_was_not_shown_to_be_faster() -> None:
    points = front(records_of([(0.9, 0.2), (1.0, 0.1)], winner=1))
    assert [(point.name, point.seconds) for point in points] == [("c1", 1.0)]


def test_points_within_errors() -> None:
    points = front(records_of([(1.0, 0.1), (2.0, 0.01), (3.0, 0.001)]))
    assert [point.name for point in points_within(points, ())] == ["c0", "c1", "c2"]
    assert [point.name for point in points_within(points, (0.05, 0.02, 0.5, 1e-9))] == ["c1", "c0"]


def test_saved_programs_compute_what_they_are_listed_for(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    points = front(records_of([(1.0, 0.1), (2.0, 0.01)]))
    inputs = random_inputs(MOD["main"], 0)
    with running_program(MOD, ("reference",)) as run:
        expected = tuple(np.asarray(array) for array in run(inputs))
    folder = tmp_path / "new" / "front"
    saved = save_front(points, folder, "net", SelfTest((inputs["x"],), expected), (0.02, 1e-9))
    assert saved.missed == (1e-9,)
    assert {path.name for path in folder.iterdir()} == {"02-c1.intarsia", "front.json", "front.svg"}
    with ia.load(saved.artifacts["c1"]) as executable:
        np.testing.assert_array_equal(executable(inputs["x"]), expected[0])
    listed = json.loads(saved.list.read_text())
    assert listed["model"] == "net"
    assert [(row["name"], row["file"], row["latency_seconds"]) for row in listed["points"]] == [
        ("c0", None, 1.0),
        ("c1", "02-c1.intarsia", 2.0),
    ]
    picture = saved.picture.read_text()
    assert picture.count("c0") == picture.count(">c0<") > 0
    assert "var(--" not in picture
    lines = front_lines(saved)
    assert lines[0] == f"wrote {saved.artifacts['c1']}: c1"
    assert "no program of the front has an error of at most 1e-09" in lines


def test_the_table_lists_the_fastest_first() -> None:
    (table,) = front_tables(front(records_of([(2.0, 0.001), (1.0, 0.1)], winner=1)))
    assert table.rows == (("1", "c1", "1.00 s", "1.0e-01", "yes"), ("2", "c0", "2.00 s", "1.0e-03", ""))
    assert table.chosen == 0
    assert front_tables(()) == ()


@pytest.mark.processes
def test_a_run_has_the_front(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    arrays = {"x": np.random.default_rng(0).standard_normal((4, 2, 4, 6, 6)).astype(np.float32)}
    result = ia.tune(
        MOD,
        budget=4,
        targets=["onnxruntime", "openvino"],
        calibration=arrays,
        tolerance=0.3,
        partitions=False,
        passes=[],
        front=True,
        database=tmp_path / "db",
    )
    assert result.front[0].name == result.chosen.name
    assert result.front[-1].error < 1e-4
    assert result.to_json()["front"][0]["chosen"]
    saved = result.save_front(tmp_path / "front")
    assert len(saved.artifacts) == len(result.front)
