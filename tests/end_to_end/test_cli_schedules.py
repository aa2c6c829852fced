"""`intarsia tune --schedules` on a small model, as a process."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.end_to_end.command_line import process, started

from intarsia.measure.database import Database

pytestmark = pytest.mark.processes

pytest.importorskip("llvmlite", reason="schedules are of native kernels")

TUNE = (
    "tune",
    "product.onnx",
    "--target",
    "native",
    "--threads",
    "1",
    "--budget",
    "10m",
    "--database",
    "kept.db",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of one product."""
    path = tmp_path_factory.mktemp("schedules")
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, extent))
        for name, extent in (("x", 16), ("y", 8))
    ]
    weight = numpy_helper.from_array(np.ones((16, 8), np.float32), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "product", ports[:1], ports[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, path / "product.onnx")
    return path


def test_schedules_are_searched_and_told(folder: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    told = process(*TUNE, "--schedules", "--schedule-trials", "3", cwd=folder, env=cache)
    assert told.code == 0, told.err
    steps = [line.partition("] ")[2] for line in told.err.splitlines()]
    assert "searching schedules" in steps
    assert any(step.startswith("searching schedules: matmul_") for step in steps)
    assert told.out.splitlines()[0].startswith("model    toolchain")
    assert "kernel" in told.out
    assert "schedules: 3 measured" in told.out
    found = process(*TUNE, "--schedules", "--schedule-trials", "3", "--json", cwd=folder, env=cache)
    (row,) = found.document["schedules"]
    assert row["name"].startswith("matmul_")
    assert row["trials"] == 3
    assert row["weight"] == 1
    assert row["default_seconds"] > 0
    plain = process(*TUNE, "--json", cwd=folder, env=cache).document
    assert [each["reason"] for each in plain["schedules"]] == ["it computes and moves too little to matter"]
    names = [each["target"] for each in plain["candidates"]]
    assert row["chosen"] or "schedules=" not in " ".join(names)
    without = process(*TUNE, "--no-schedules", "--json", cwd=folder, env=cache).document
    assert without["schedules"] == []
    assert "schedules=" not in " ".join(each["target"] for each in without["candidates"])


def test_ctrl_c_keeps_what_was_measured(folder: Path, tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = "tune", str(folder / "product.onnx"), "--target", "native", "--threads", "1", "--schedules"
    place = "--database", str(tmp_path / "kept.db")
    child = started(*words, *place, "--budget", "10m", cwd=tmp_path, env=cache)
    assert child.stderr is not None
    for line in child.stderr:
        if "searching schedules: " in line:
            break
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, out
    assert "the best so far was saved" in err
    assert "note: stopping after the current candidate; Ctrl-C again stops now\n" in err
    again = process(
        *words, *place, "--schedule-trials", "1", "--budget", "10m", "--json", cwd=tmp_path, env=cache
    )
    (row,) = again.document["schedules"]
    assert row["trials"] >= 1
    assert row["default_seconds"] > 0
    with Database.open(tmp_path / "kept.db", create=False) as database:
        assert (
            sum(each.records for each in database.summaries() if each.name.startswith("schedule "))
            == row["trials"]
        )


def test_schedules_are_of_native(folder: Path) -> None:
    refused = process("tune", "product.onnx", "--target", "reference", "--schedules", "-q", cwd=folder)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        "error: schedules are of native kernels, and native is not among the targets\n"
        "help: add --target native, or leave out --schedules\n"
    )
