"""Measured machine models on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from intarsia.support.errors import OutputError
from intarsia.target import Host
from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.machine_file import (
    default_machine_model,
    machine_file,
    machine_model,
    write_machine_model,
)
from intarsia.target.machine_model import MachineModel

MILAN = "processor : 0\nvendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\nmodel name : AMD EPYC\n"
SKYLAKE = MILAN.replace("AuthenticAMD", "GenuineIntel").replace("25", "6").replace("model : 1", "model : 85")


def machine(folder: Path, cpuinfo: str, ways: str = "8") -> Path:
    """Lay out the files of a machine with 48 KiB of first-level cache."""
    (folder / "proc").mkdir(parents=True)
    (folder / "proc/cpuinfo").write_text(cpuinfo)
    cache = folder / "sys/devices/system/cpu/cpu0/cache/index0"
    cache.mkdir(parents=True)
    facts = {"level": "1", "type": "Data", "size": "48K", "ways_of_associativity": ways}
    for name, value in (facts | {"coherency_line_size": "128"}).items():
        (cache / name).write_text(value)
    return folder


def test_defaults_are_those_of_the_family_and_the_systems_files(tmp_path: Path) -> None:
    model = default_machine_model(machine(tmp_path, MILAN, "12"))
    assert (model.family, model.fma_bytes) == ("znver3", 64)
    assert (model.caches.first, model.first_ways, model.line_bytes) == (48 << 10, 12, 128)
    assert model.caches.second == CacheSizes().second


def test_without_files_the_model_is_generic(tmp_path: Path) -> None:
    assert default_machine_model(tmp_path) == MachineModel()


def test_measured_values_are_read_back(tmp_path: Path) -> None:
    root, folder = machine(tmp_path / "root", MILAN), tmp_path / "new" / "machines"
    default = machine_file(root, folder)
    assert default.measured == ()
    assert default.problem == ""
    measured = replace(default.model, fma_latency=7, memory_bandwidth=2.5)
    assert write_machine_model(measured, root, folder).model == measured
    again = machine_file(root, folder)
    assert again.model == measured
    assert "fma_latency" in again.measured
    assert again.path.parent == folder


def test_another_machine_reads_another_file(tmp_path: Path) -> None:
    root, other = machine(tmp_path / "a", MILAN), machine(tmp_path / "b", SKYLAKE)
    write_machine_model(replace(default_machine_model(root), fma_latency=7), root, tmp_path)
    assert machine_file(root, tmp_path).model.fma_latency == 7
    assert machine_file(other, tmp_path).model == default_machine_model(other)


@pytest.mark.parametrize(
    "record",
    [
        "no JSON",
        "[]",
        "{}",
        json.dumps({"version": 0, "measured": {}}),
        json.dumps({"version": 1, "measured": {"family": "znver9"}}),
        json.dumps({"version": 1, "measured": {"fma_latency": "4"}}),
        json.dumps({"version": 1, "measured": {"fma_latency": 4.5}}),
        json.dumps({"version": 1, "measured": {"fma_latency": True}}),
        json.dumps({"version": 1, "measured": {"memory_bandwidth": -1.0}}),
    ],
)
def test_damaged_files_are_not_used(tmp_path: Path, record: str) -> None:
    root = machine(tmp_path / "root", MILAN)
    path = write_machine_model(default_machine_model(root), root, tmp_path / "a").path
    copy = tmp_path / "b" / path.name
    copy.parent.mkdir()
    copy.write_text(record)
    damaged = machine_file(root, copy.parent)
    assert damaged.model == default_machine_model(root)
    assert damaged.problem == "is damaged or of another version"
    assert damaged.measured == ()


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    root, folder = machine(tmp_path / "root", MILAN), tmp_path / "machines"
    folder.write_text("")
    assert machine_file(root, folder).problem == "cannot be read: not a directory"
    with pytest.raises(OutputError, match=r"cannot write .*machines: file exists"):
        write_machine_model(default_machine_model(root), root, folder)


def test_an_old_file_stays_if_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine(tmp_path / "root", MILAN)
    before = write_machine_model(replace(default_machine_model(root), fma_latency=7), root, tmp_path)

    def interrupted(_path: Path, _text: str) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_machine_model(replace(before.model, fma_latency=9), root, tmp_path)
    monkeypatch.undo()
    assert machine_file(root, tmp_path) == before
    assert [path.name for path in tmp_path.glob("*.json*")] == [before.path.name]


def test_a_user_without_a_home_gets_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_DATA_HOME")
    assert machine_model() == default_machine_model()
    with pytest.raises(OutputError, match="this user has no home folder"):
        write_machine_model(machine_model())


def test_the_model_is_a_part_of_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    before = Host.detect()
    assert before.machine == str(machine_model())
    same = write_machine_model(machine_model())
    assert same.measured
    assert Host.detect() == before, "a measurement that confirms what was assumed changes no fingerprint"
    write_machine_model(replace(machine_model(), barrier_cycles=12345))
    after = Host.detect()
    assert after.digest != before.digest
    assert after.differences(before) == (
        f"machine model: barrier_cycles=12345 here, barrier_cycles={same.model.barrier_cycles} there",
    )


def test_a_host_of_an_older_version_has_no_model() -> None:
    record = Host.detect().to_json()
    del record["machine"]
    older = Host.from_json(record)
    assert older.machine == ""
    assert older.to_json() == record, "its digest is the one that databases contain"
