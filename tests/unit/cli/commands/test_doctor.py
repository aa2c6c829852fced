"""`intarsia doctor --calibrate`: what it shows, stores, and leaves."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.fake_machine import FakeMachine, probe_rates

from intarsia.cli.exit import run_command_line
from intarsia.native import calibration
from intarsia.native.calibration import calibrate
from intarsia.native.machine.isa import Isa
from intarsia.target.machine_file import default_machine_model, machine_file, machine_model
from intarsia.target.machine_model import MachineModel


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder that does not exist yet."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


def outcome(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return run_command_line(arguments, out, err), out.getvalue(), err.getvalue()


def let_measure(monkeypatch: pytest.MonkeyPatch, model: MachineModel, **options: int) -> FakeMachine:
    """Let calibrations measure a machine of a model."""
    isa = Isa.host()
    machine = FakeMachine(probe_rates(model, isa.vector_bytes, isa.cores), **options)
    monkeypatch.setattr(calibration, "machine_probes", machine.of_isa)
    monkeypatch.setattr(calibration, "calibrate", partial(calibrate, clock=machine.clock))
    return machine


def rows(text: str) -> dict[str, list[str]]:
    """The columns of a table by the first one."""
    lines = (line.split("  ") for line in text.splitlines())
    return {first: [cell.strip() for cell in cells if cell.strip()] for first, *cells in lines}


def test_a_machine_as_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    default = default_machine_model()
    let_measure(monkeypatch, default)
    code, out, err = outcome("doctor", "--calibrate")
    assert (code, err.count("measuring")) == (0, 1)
    latency = f"{default.fma_latency}"
    assert rows(out)["multiply-add, latency"] == [latency, latency, latency, "cycles"]
    assert rows(out)["page"] == [f"{default.page_bytes}", f"{default.page_bytes}", "bytes"]
    assert f"the defaults of {default.family} hold here" in out
    assert machine_model() == default
    assert f"machine model: measured, in {machine_file().path}\n" in outcome("doctor")[1]


def test_another_machine_than_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    default = default_machine_model()
    before = json.loads(outcome("doctor", "--json")[1])
    assert before["machine_model"]["measured"] == []
    let_measure(monkeypatch, replace(default, fma_latency=9, memory_bandwidth=1.5))
    code, out, err = outcome("doctor", "--calibrate", "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["changed"] == ["fma_latency", "memory_bandwidth"]
    assert document["values"]["fma_latency"] == 9
    assert document["default"]["fma_latency"] == default.fma_latency
    assert document["raw"]["memory_bandwidth"] == pytest.approx(1.5)
    assert document["gigahertz"] == pytest.approx(2.0)
    assert machine_model().fma_latency == Isa.host().machine.fma_latency == 9
    assert Isa.host().independent_sums == 9 * default.fmas_per_cycle(Isa.host().vector_bytes)
    after = json.loads(outcome("doctor", "--json")[1])
    assert after["machine_model"]["values"]["fma_latency"] == 9
    assert "fma_latency" in after["machine_model"]["measured"]


def test_a_busy_machine_says_what_it_could_not_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = let_measure(monkeypatch, default_machine_model())
    machine.per_cycle = {kind: rate for kind, rate in machine.per_cycle.items() if "BUSY" not in kind.name}
    _, out, _ = outcome("doctor", "--calibrate")
    reason = "there is one core" if Isa.host().cores == 1 else "the other cores were busy"
    assert rows(out)["loads from memory, each of all cores"][-1] == f"not measured: {reason}"


def test_an_interrupted_calibration_leaves_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    let_measure(monkeypatch, replace(default_machine_model(), fma_latency=9))
    outcome("doctor", "--calibrate")
    before = machine_file()
    let_measure(monkeypatch, default_machine_model(), interrupted_at=100)
    assert outcome("doctor", "--calibrate")[0] == 130
    assert machine_file() == before
    assert json.loads(before.path.read_text())["measured"]["fma_latency"] == 9


def test_nothing_is_measured_that_cannot_be_stored(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data.write_text("a file in place of the folder")
    machine = let_measure(monkeypatch, default_machine_model())
    code, out, err = outcome("doctor", "--calibrate")
    assert (code, out, machine.runs) == (2, "", 0)
    assert err == (
        f"error: cannot write {data / 'intarsia' / 'machines'}: not a directory\n"
        "help: a part of the path is a file: choose another folder\n"
    )


def test_a_damaged_file_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    let_measure(monkeypatch, default_machine_model())
    outcome("doctor", "--calibrate")
    path = machine_file().path
    path.write_text("{}")
    machine_file.__globals__["_machine_file"].cache_clear()  # as in another process
    family = default_machine_model().family
    _, out, _ = outcome("doctor")
    assert f"machine model: defaults of {family}; {path} is damaged or of another version\n" in out
    assert "help: measure them with: intarsia doctor --calibrate" in out


def test_one_measurement_at_a_time() -> None:
    code, _, err = outcome("doctor", "--calibrate", "--noise")
    assert (code, err) == (
        2,
        "error: --noise and --calibrate are two measurements\nhelp: run one after the other\n",
    )
