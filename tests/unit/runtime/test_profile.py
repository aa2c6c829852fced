"""Profiles as tables, data and traces, of kernels that take the times of a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intarsia.runtime.chrome_trace import TraceSlice
from intarsia.runtime.kernel_profiler import KernelWork, ProfiledKernel, SourceNode
from intarsia.runtime.profile import Profile, ProfileRow
from intarsia.support.errors import UsageError

CONV, RELU = SourceNode("block/conv", "Conv"), SourceNode("block/relu", "Relu")
OTHER, DENSE = SourceNode("other/conv", "Conv"), SourceNode("dense", "Gemm")
WORK = KernelWork(flop=2_000_000, bytes=30_000, bound=5e-6)
ROWS = (
    ProfileRow("native", "main", ProfiledKernel("conv_relu", (CONV, RELU), CONV, WORK), 1, 20e-6),
    ProfileRow("native", "main", ProfiledKernel("to_blocked", is_conversion=True), 1, 1e-6),
    ProfileRow("native", "main", ProfiledKernel("conv_relu", (OTHER,), OTHER, WORK), 1, 30e-6),
    ProfileRow("other", "tail", ProfiledKernel("Gemm", (DENSE,), DENSE, KernelWork(0, 400)), 2, 40e-6),
    ProfileRow("reference", "rest", ProfiledKernel("rest"), 1, 4e-6),
)
PROFILE = Profile(ROWS, 100e-6, 5e-6, 98e-6, 8, notes=("the clock of other is slow",))


def test_the_table_by_node() -> None:
    assert (
        str(PROFILE)
        == """\
    time  share  calls  FLOP  bytes  roofline  toolchain  node                 kernel
 40.0 us  40.0%      2     -  800 B         -  other      dense                Gemm
 30.0 us  30.0%      1   2 M  30 kB       17%  native     other/conv           conv_relu
 20.0 us  20.0%      1   2 M  30 kB       25%  native     block/conv (+1)      conv_relu
  4.0 us   4.0%      1     -      -         -  reference  rest                 rest
  1.0 us   1.0%      1     -      -         -  native     (layout conversion)  to_blocked

 95.0 us  kernels
  5.0 us  outside of kernels
100.0 us  profiled run, mean of the fastest quarter of 8
 98.0 us  end to end without profiling
the clock of other is slow"""
    )


def test_the_table_by_kernel_with_the_rest_in_one_row() -> None:
    lines = PROFILE.table("kernel", top=2).splitlines()
    assert [" ".join(line.split()) for line in lines[:4]] == [
        "time share calls FLOP bytes roofline toolchain kernel nodes",
        "50.0 us 50.0% 2 4 M 60 kB 20% native conv_relu block/conv (+1) and 1 more",
        "40.0 us 40.0% 2 - 800 B - other Gemm dense",
        "5.0 us 5.0% ... 2 more",
    ]


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("module", ["(no module)", "other", "block", "rest", "(layout conversion)"]),
        ("operator", ["Conv", "Gemm", "rest", "(layout conversion)"]),
    ],
)
def test_groups(by: str, names: list[str]) -> None:
    groups = PROFILE.groups(by)
    assert [group.name for group in groups] == names
    assert sum(group.seconds for group in groups) == pytest.approx(PROFILE.kernel_seconds)


def test_a_group_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="profiles are not grouped by 'layer'"):
        PROFILE.groups("layer")


def test_longer_programs_are_shown_in_milliseconds() -> None:
    profile = Profile(ROWS[:1], 0.02, 0.01998, 0.02, 1)
    assert profile.table().splitlines()[-1] == "20.0 ms  end to end without profiling"


def test_data() -> None:
    record = PROFILE.to_json()
    assert json.loads(json.dumps(record)) == record
    kernels = record["kernels"]
    assert isinstance(kernels, list)
    assert kernels[0] == {
        "toolchain": "native",
        "part": "main",
        "kernel": "conv_relu",
        "nodes": [{"name": "block/conv", "operator": "Conv"}, {"name": "block/relu", "operator": "Relu"}],
        "anchor": "block/conv",
        "is_conversion": False,
        "calls": 1,
        "seconds": 20e-6,
        "share": pytest.approx(0.2),
        "flop": 2_000_000,
        "bytes": 30_000,
        "bound_seconds": 5e-6,
        "counters": None,
    }


def test_the_trace_is_written_as_a_file(tmp_path: Path) -> None:
    slices = (TraceSlice("conv", "native", "host", 3000, 5000, {"nodes": ["block/conv"]}),)
    Profile((), 1e-6, 0.0, 1e-6, 1, slices).write_trace(tmp_path / "trace.json")
    name, event = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert name["args"] == {"name": "host"}
    assert (event["name"], event["ts"], event["dur"], event["args"]) == (
        "conv",
        0.0,
        2.0,
        {"nodes": ["block/conv"]},
    )


def test_several_kernels_of_one_node_are_one_row_by_node() -> None:
    rows = [ProfileRow("native", "main", ProfiledKernel(name, (CONV,), CONV), 1, 1e-6) for name in "ab"]
    (group,) = Profile(tuple(rows), 2e-6, 0.0, 2e-6, 1).groups("node")
    assert (group.name, group.detail, group.calls, group.flop) == ("block/conv", "a and 1 more", 2, None)
