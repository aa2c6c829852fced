"""A layer measured by real processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from benchmarks.sweep.case import Case
from benchmarks.sweep.contest import CONTENDERS, Contender, Turns, measure_layer

from intarsia.native.roofline import Roofline

pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")

ROOFLINE = Roofline(1e11, 1e10, 1 << 25)
TURNS = Turns(rounds=3, seconds=0.001, threads=1)


@pytest.fixture(scope="module")
def contenders() -> Iterator[list[Contender]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Contender(*names)) for names in CONTENDERS]


@pytest.mark.processes
def test_a_layer_is_compared_and_timed(contenders: list[Contender], tmp_path: Path) -> None:
    case = Case.parse("product n=1 m=4 k=64 cols=48 as=matmul then=relu")
    for _ in range(2):
        record = measure_layer(case, contenders, TURNS, ROOFLINE, tmp_path)
        assert record["errors"] == {}
        assert set(record["seconds"]) == {"native", "onnxruntime", "openvino"}
        assert record["error"] < 1e-5
        # Medians may come of other rounds than the largest ratio: only the smallest is a bound.
        assert record["range"][0] <= record["ratio"]
        assert record["settings"]["native"] == "default"


@pytest.mark.processes
def test_a_process_that_dies_is_an_error_and_the_next_layer_runs(
    contenders: list[Contender], tmp_path: Path
) -> None:
    native = contenders[0]
    missing = {
        "model": str(tmp_path / "no.onnx"),
        "inputs": str(tmp_path / "no.npz"),
        "results": "",
        "threads": 1,
    }
    assert "FileNotFoundError" in native.request(missing, 60)["error"]
    assert native.request({"close": True}, 60) == {"closed": True}
    assert native.request({"seconds": 0.01}, 60) == {"error": "the process has ended"}
    case = Case.parse("elementwise shape=8,16 chain=Relu")
    assert measure_layer(case, contenders, TURNS, ROOFLINE, tmp_path)["errors"] == {}


@pytest.mark.processes
def test_a_contender_that_does_not_answer_is_started_again(tmp_path: Path) -> None:
    with Contender("onnxruntime", "default") as contender:
        os.mkfifo(tmp_path / "never.npz")  # whoever opens it waits for a writer
        waiting = {"model": "", "inputs": str(tmp_path / "never.npz"), "results": "", "threads": 1}
        assert contender.request(waiting, 0.2) == {"error": "no reply within 0 s"}
        assert contender.request({"close": True}, 60) == {"closed": True}
