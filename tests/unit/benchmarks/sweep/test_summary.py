"""Ratios of a sweep, and losses by cause."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from benchmarks.sweep.contest import (
    Contender,
    LoadedContender,
    faster_settings,
    largest_difference,
    ratio_of_least,
    share_of_bound,
    summarise_times,
)
from benchmarks.sweep.summary import cause_of, describe, group_records, loss_of, summarise_group

INFINITY = math.inf


def record(ratio: float | None, *properties: str, family: str = "dense", **fields: Any) -> dict[str, Any]:
    return {
        "case": f"{family} n=1",
        "family": family,
        "properties": properties,
        "seconds": {"native": 1.0, "onnxruntime": 2.0},
        "ratio": ratio,
        "range": [ratio, ratio],
        "least_ratio": ratio,
        "of_bound": 0.5,
        "error": 1e-6,
        "engines_differ": 1e-6,
        "errors": {},
        **fields,
    }


def refused(*properties: str) -> dict[str, Any]:
    errors = {"native": "CompileError: no scan"}
    return record(None, *properties, seconds={"onnxruntime": 1.0}, error=None, of_bound=None, errors=errors)


def test_a_ratio_is_that_of_the_medians() -> None:
    times = {"native": [1.0, 2.0, 9.0], "onnxruntime": [4.0, 4.0, 4.0], "openvino": [3.0, 3.0, 8.0]}
    summary = summarise_times(times)
    assert summary["seconds"] == {"native": 2.0, "onnxruntime": 4.0, "openvino": 3.0}
    assert summary["ratio"] == 1.5
    assert summary["range"] == [pytest.approx(4 / 9), 3.0]


def test_one_engine_is_enough_for_a_ratio() -> None:
    times = {"native": [1.0], "onnxruntime": [INFINITY], "openvino": [2.0]}
    assert summarise_times(times)["ratio"] == 2.0


def test_there_is_no_ratio_without_native_or_without_engines() -> None:
    without_native = {"native": [INFINITY], "onnxruntime": [1.0], "openvino": [2.0]}
    summary = summarise_times(without_native)
    assert summary["ratio"] is None
    assert "native" not in summary["seconds"]
    without_engines = {"native": [1.0], "onnxruntime": [INFINITY], "openvino": [INFINITY]}
    assert summarise_times(without_engines)["ratio"] is None


def test_the_shortest_calls_give_a_ratio_and_a_share_of_the_roofline() -> None:
    least = {"native": 2.0, "onnxruntime": 3.0, "openvino": 4.0}
    assert ratio_of_least(least) == 1.5
    assert ratio_of_least({**least, "onnxruntime": INFINITY, "openvino": INFINITY}) is None
    assert ratio_of_least({**least, "native": INFINITY}) is None
    assert share_of_bound(2.0, 1.0) == 0.5
    assert share_of_bound(INFINITY, 1.0) is None


def test_the_faster_setting_of_each_engine_counts() -> None:
    loaded = []
    for name, setting, times in (("a", "x", [3.0, 2.0]), ("a", "y", [1.0, 9.0]), ("b", "x", [5.0, 5.0])):
        contender = Contender.__new__(Contender)
        contender.name, contender.setting = name, setting
        loaded.append(LoadedContender(contender, 0.0, None, times, min(times)))
    assert [item.contender.setting for item in faster_settings(loaded)] == ["y", "x"]


def test_differences_are_relative_to_the_largest_element() -> None:
    expected = [np.array([0.0, 100.0], np.float32)]
    assert largest_difference([np.array([1.0, 100.0], np.float32)], expected) == pytest.approx(0.01)
    assert largest_difference([np.array([math.nan, 1.0], np.float32)], expected) == INFINITY
    assert largest_difference([np.zeros(3, np.float32)], expected) == INFINITY
    assert largest_difference([np.zeros(2, np.float32)], [np.zeros(2, np.float32)]) == 0.0


def test_a_group_counts_losses_and_refusals_apart() -> None:
    group = summarise_group("all", [record(2.0), record(0.5), record(1.0), refused()])
    assert (group.layers, group.losses, group.refused) == (4, 1, 1)
    assert group.mean == pytest.approx(1.0)
    assert (group.least, group.ahead, group.of_bound) == (0.5, 0.5, 0.5)


def test_a_group_of_refused_layers_has_no_mean() -> None:
    group = summarise_group("all", [refused()])
    assert math.isnan(group.mean)
    assert group.ahead == 0.0


def test_what_loses_most_comes_first() -> None:
    records = [record(0.9, "a"), record(0.5, "b"), record(0.95, "a"), record(4.0, "c")]
    groups = group_records(records, lambda item: [cause_of(item)])
    assert [group.name for group in groups] == ["dense: b", "dense: a", "dense: c"]
    assert [group.layers for group in groups] == [1, 2, 1]
    assert [group.name for group in group_records(records, lambda item: item["properties"], 2)] == ["a"]


def test_a_refused_layer_loses_as_much_as_a_slow_one() -> None:
    assert loss_of(record(2.0)) == 0.0
    assert loss_of(record(0.5)) == pytest.approx(math.log(2))
    assert loss_of(refused()) == 1.0


def test_the_cause_of_a_layer_without_properties_is_its_family() -> None:
    assert cause_of(record(0.5)) == "dense"
    assert cause_of(record(0.5, "3-D", "stride")) == "dense: 3-D"


def test_the_report_names_what_is_worst_refused_and_wrong() -> None:
    wrong = record(3.0, case="dense n=7", error=0.5)
    text = describe([record(2.0), record(0.5, "3-D", case="dense n=9"), refused("LSTM"), wrong], worst=1)
    assert "4 layers, 3 compared, 1 refused by native" in text
    assert "under 0.8: 1" in text
    worst = text[text.index("the 1 worst") : text.index("refused by native:")]
    assert "--case 'dense n=9'" in worst
    assert "dense n=7" not in worst
    assert "no scan" in text
    assert "--case 'dense n=7': 5.0e-01" in text[text.index("results of native that differ") :]


def test_layers_that_no_engine_runs_count_neither_as_refused_nor_as_compared() -> None:
    nothing = record(None, seconds={}, errors={"native": "x", "onnxruntime": "x", "openvino": "x"})
    group = summarise_group("all", [nothing, record(2.0)])
    assert (group.refused, group.losses) == (0, 0)
