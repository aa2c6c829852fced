"""What was tried, as people see it."""

from __future__ import annotations

import json
from math import inf

from tests.tuning_passes import CostTable, Deciding, NoteHeuristic, layout, parallel, planted, program

from intarsia.transform import Sequential
from intarsia.tune import TuningContext

JOINT = """\
tuning
  Deciding
    on: 5000 ms  <- chosen
      Deciding
        NCHW: 1.2e+04 ms
        NHWC: 5000 ms  <- chosen
        none: 1e+04 ms
    off: 9000 ms
      Deciding
        NCHW: 9000 ms  <- chosen
        NHWC: 1.1e+04 ms
        none: 1e+04 ms"""

IN_A_ROW = """\
tuning
  Deciding
    on: 1.2e+04 ms
    off: 1e+04 ms  <- chosen
  Deciding
    NCHW: 9000 ms  <- chosen
    NHWC: 1.1e+04 ms
    none: 1e+04 ms"""


def test_passes_inside_passes() -> None:
    ctx = TuningContext(CostTable(planted))
    parallel(layout())(program(), ctx)
    assert str(ctx.node) == JOINT
    assert ctx.node.count == 6


def test_passes_in_a_row() -> None:
    ctx = TuningContext(CostTable(planted))
    Sequential([parallel(), NoteHeuristic(), layout()])(program(), ctx)
    assert str(ctx.node) == IN_A_ROW
    assert ctx.node.count == 5


def test_failures_say_why_and_all_is_plain_data() -> None:
    ctx = TuningContext(CostTable(lambda mod: inf if mod.attrs["fact"] == "0" else 1e-3))
    Deciding()(program(), ctx)
    assert str(ctx.node) == "tuning\n  Deciding\n    0: planned to fail\n    1: 1 ms  <- chosen"
    data = json.loads(json.dumps(ctx.node.to_json()))
    assert data["children"][0]["children"][0] == {
        "name": "0",
        "perf": "inf",
        "fate": "planned to fail",
        "children": [],
    }
