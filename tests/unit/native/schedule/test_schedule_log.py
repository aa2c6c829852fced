"""Schedule logs: by what is computed, whatever the names, and never half a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intarsia.ir import DType
from intarsia.native import te
from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import ScheduleLog, default_state, with_state
from intarsia.support.errors import CompileError, OutputError

ISA = Isa.host()


def product(prefix: str = "", extent: int = 64) -> ComputeDAG:
    """A matrix product whose right side may be packed, with names of its own."""
    x = te.placeholder((32, extent), DType.FLOAT32, f"{prefix}x")
    w = te.placeholder((extent, 128), DType.FLOAT32, f"{prefix}w", {"constant": 1})
    k = te.reduce_axis(extent, f"{prefix}k")
    y = te.compute(
        (32, 128),
        lambda i, j: te.sum(x[i, k] * w[k, j], k),
        f"{prefix}y",
        attrs={"layout_free_placeholders": (f"{prefix}w",)},
        axis_names=(f"{prefix}i", f"{prefix}j"),
    )
    return ComputeDAG((x, w, y))


def tiled(dag: ComputeDAG) -> LoopState:
    """A state that no rule gives."""
    state = LoopState.initial(dag)
    name = state.stages[-1].op.name
    i, j, k = (loop.name for loop in state[name].iters)
    state = state.split(name, i, [4]).split(name, j, [16])
    return state.reorder(name, [f"{i}.0", f"{j}.0", k, f"{i}.1", f"{j}.1"]).vectorize(name, f"{j}.1")


def test_a_schedule_is_found_by_what_is_computed() -> None:
    dag, other = product(), product("another ")
    log = ScheduleLog.of_states([tiled(dag)])
    assert len(log) == 1
    found, named = log.lookup(dag), log.lookup(other)
    assert found is not None
    assert named is not None
    assert str(found) == str(tiled(dag))
    assert str(named) == str(tiled(other)) != str(found)
    assert log.lookup(product(extent=32)) is None


@pytest.mark.parametrize("prefix", ["", "t", "k", "long name.of "])
def test_default_states_replay_under_other_names(prefix: str) -> None:
    dag = product()
    log, named = ScheduleLog.of_states([default_state(dag, ISA, 2)]), product(prefix)
    found = log.lookup(named)
    assert found is not None
    assert str(found) == str(default_state(named, ISA, 2))


def test_a_log_round_trips() -> None:
    dags = [product(extent=extent) for extent in (32, 64)]
    log = ScheduleLog.of_states([tiled(dags[0]), default_state(dags[1], ISA, 2)])
    again = ScheduleLog.from_text(log.to_text(), "here")
    assert (again, again.digest, again.to_text()) == (log, log.digest, log.to_text())
    assert ScheduleLog.from_text(ScheduleLog({}).to_text(), "here") == ScheduleLog({})


def test_the_digest_is_of_the_contents() -> None:
    first, second = tiled(product()), tiled(product(extent=32))
    logs = [ScheduleLog.of_states(states) for states in ([first, second], [second, first], [first])]
    assert logs[0].digest == logs[1].digest != logs[2].digest
    assert hash(logs[0]) == hash(logs[1])


def test_a_saved_log_is_loaded_by_its_digest(tmp_path: Path) -> None:
    log = ScheduleLog.of_states([tiled(product())])
    path = log.save(tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / f"{log.digest}.json"
    assert ScheduleLog.load(path.parent, log.digest) == log
    assert log.save(path.parent) == path
    assert list(path.parent.iterdir()) == [path]


def test_where_nothing_can_be_written_an_error_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"cannot write .*file"):
        ScheduleLog({}).save(tmp_path / "file")


def test_what_is_no_log_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    log = ScheduleLog.of_states([tiled(product())])
    path = log.save(tmp_path)
    with pytest.raises(CompileError, match=r"there is no schedule log .*0{16}\.json"):
        ScheduleLog.load(tmp_path, "0" * 16)
    with pytest.raises(CompileError, match=r"'\.\./x' names no schedule log; expected 16 hexadecimal"):
        ScheduleLog.load(tmp_path, "../x")
    path.write_text(log.to_text().replace("[4]", "[8]"))
    with pytest.raises(CompileError, match=r"is damaged: its digest is .*\n.*help: make it again with"):
        ScheduleLog.load(tmp_path, log.digest)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CompileError, match="cannot read the schedule log"):
        ScheduleLog.load(tmp_path, log.digest)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is damaged: Expecting"),
        ("[]", "is damaged: list indices"),
        ("{}", "is damaged: 'version'"),
        ('{"version": 1, "schedules": []}', "is damaged: 'list' object"),
        ('{"version": 1, "schedules": {"a": 1}}', "is damaged: found 1, expected a list of steps"),
        ('{"version": 7, "schedules": {}}', "has version 7, expected 1"),
    ],
    ids=["cut", "list", "empty", "no schedules", "no steps", "version"],
)
def test_damaged_text(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=f"the schedule log here {message}"):
        ScheduleLog.from_text(text, "here")


@pytest.mark.parametrize(
    "steps",
    [[["SP", 9, 0, 32, [4], 1]], [["XX", 1]], [["SP", 2, 0, 32]], [["RE", 2, [0, 0]]], [7]],
    ids=["stage", "code", "fields", "order", "number"],
)
def test_a_history_that_is_not_possible_is_left_out(steps: object) -> None:
    dag = product()
    log = ScheduleLog({structural_key(dag): json.dumps(steps)})
    assert log.lookup(dag) is None
    assert ScheduleLog.from_text(log.to_text(), "here").digest


def test_a_state_is_scheduled_with_packed_constants() -> None:
    dag = product()
    state = tiled(dag)
    ahead = with_state(dag, state)
    assert [each.tensor_name for each in ahead.packings] == ["w"]
    assert ahead.dag is not dag
    inside = with_state(dag, state, LayoutRewriteOption.INSERT_TRANSFORM_STAGE)
    assert inside.packings == ()
    assert len(inside.dag.ops) == len(dag.ops) + 1
    plain = with_state(dag, state, LayoutRewriteOption.NO_REWRITE)
    assert (plain.dag, plain.state, plain.packings) == (dag, state, ())
    assert all(len(each.lowered().params) == 3 for each in (ahead, inside, plain))
