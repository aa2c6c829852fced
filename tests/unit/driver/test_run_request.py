"""The request of a run as flags that the command line reads back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from intarsia.cli.arguments.shape import parse_shape_words
from intarsia.driver.run_request import run_request
from intarsia.driver.tune_options import TuneOptions
from intarsia.measure.sizes.dim_sizes import DimSizes, SizesArgument
from intarsia.report.run_records import RunRequest
from intarsia.support.version import VERSION


def flags(**changes: Any) -> list[tuple[str, str]]:
    return list(run_request(TuneOptions(**changes)).flags)


def test_defaults_are_the_budget_and_the_seed() -> None:
    assert run_request(TuneOptions()) == RunRequest(VERSION, (("--budget", "60s"), ("--seed", "0")), ())


def test_numbers_texts_and_switches() -> None:
    switches = {"exact": True, "schedules": False, "plan": Path("p.json"), "dynamic": "none"}
    assert flags(trials=4, targets=["native", "openvino"], passes=[], **switches)[2:] == [
        ("--trials", "4"),
        ("--target", "native"),
        ("--target", "openvino"),
        ("--passes", "none"),
        ("--exact", ""),
        ("--plan", "p.json"),
        ("--dynamic", "none"),
    ]
    assert flags(targets="native")[2:] == [("--target", "native")]
    assert flags(budget=2.5)[0] == ("--budget", "2.5s")


@pytest.mark.parametrize(
    "sizes", [8, (1, 8), {16: 0.5, 128: 0.5}, "1..512@log", "32..640/32", "16:0.5,128:0.4,512:0.1"]
)
def test_sizes_are_read_back(sizes: SizesArgument) -> None:
    ((_, text),) = flags(dims={"n": sizes})[2:]
    words = parse_shape_words([text])
    assert DimSizes.read("n", words.dims["n"]) == DimSizes.read("n", sizes)


def test_shapes_are_read_back() -> None:
    ((_, text),) = flags(shapes={"x": (1, 3)})[2:]
    assert parse_shape_words([text]).shapes == {"x": (1, 3)}


def test_calibration_is_read_back() -> None:
    assert flags(calibration="x.npz", max_drop=0.01, metric="cosine")[2:] == [
        ("--calibration", "x.npz"),
        ("--max-drop", "0.01"),
        ("--metric", "cosine"),
    ]
    (note,) = run_request(TuneOptions(calibration={"x": np.zeros(3)}, tolerance=0.1)).notes
    assert note == "calibration arrays were given, which a report does not contain"


def test_what_flags_do_not_say_is_noted() -> None:
    changes: dict[str, Any] = {"shapes": {"x": ("n", 3)}, "inputs": {"x": np.zeros(3)}, "partitions": False}
    request = run_request(TuneOptions(**changes))
    assert request.flags[2:] == ()
    assert list(request.notes) == [
        "the input x has the shape (n, 3), which flags do not express",
        "input arrays were given, which a report does not contain: x",
        "parts of the model were not given to different toolchains (partitions=False)",
    ]
