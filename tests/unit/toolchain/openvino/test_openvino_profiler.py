"""Means of OpenVINO's counters over the runs that count."""

from __future__ import annotations

from intarsia.toolchain.openvino.profiler import NodeTime, mean_nanoseconds, scaled_events


def node(name: str, microseconds: int) -> NodeTime:
    return NodeTime(name, "Convolution", "brgconv", microseconds)


def test_forgotten_runs_are_taken_out_of_the_mean() -> None:
    # Three runs of 100 us to warm up, then 7 of 50 us: the mean of ten is 65.
    means = mean_nanoseconds([node("a", 65)], [node("a", 100)], runs=10, forgotten=3)
    assert means == [(node("a", 65), 50_000)]


def test_nodes_without_time_are_left_out() -> None:
    means = mean_nanoseconds([node("a", 0), node("b", 2)], [], runs=4, forgotten=0)
    assert means == [(node("b", 2), 2000)]
    assert mean_nanoseconds([node("a", 5)], [node("a", 5)], runs=2, forgotten=2) == []


def test_means_are_scaled_to_each_run() -> None:
    fast, slow = scaled_events([2000, 1000], [(0, 3000), (10_000, 19_000)])
    assert [(event.start, event.end) for event in fast] == [(0, 1000), (1000, 1500)]
    assert [(event.start, event.end) for event in slow] == [(10_000, 13_000), (13_000, 14_500)]
    assert scaled_events([1], []) == ()
