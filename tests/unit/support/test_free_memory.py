"""The memory that a process can still take."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from intarsia.support import free_memory as module
from intarsia.support.free_memory import free_memory
from intarsia.support.machine_memory import machine_memory

_MIB = 1 << 20


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of control groups of a machine with 100 MiB, in which the process is in group a/b."""
    (tmp_path / "meminfo").write_text("MemTotal:  999999 kB\nMemAvailable:  102400 kB\n")
    (tmp_path / "cgroup").write_text("0::/a/b\n")
    groups = tmp_path / "groups"
    (groups / "a" / "b").mkdir(parents=True)
    monkeypatch.setattr(module, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(module, "_GROUP_OF_PROCESS", tmp_path / "cgroup")
    monkeypatch.setattr(module, "_GROUPS", groups)
    return groups


def limit(group: Path, limit: str, used: int) -> None:
    (group / "memory.max").write_text(limit + "\n")
    (group / "memory.current").write_text(f"{used}\n")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_machine_has_free_memory() -> None:
    assert 0 < free_memory() <= machine_memory()


def test_groups_without_a_limit_leave_what_the_machine_has(files: Path) -> None:
    assert free_memory() == 100 * _MIB
    limit(files / "a" / "b", "max", 10)
    assert free_memory() == 100 * _MIB


@pytest.mark.parametrize("group", ["a/b", "a", "."])
def test_each_group_limits_those_inside(files: Path, group: str) -> None:
    limit(files / group, str(50 * _MIB), 20 * _MIB)
    assert free_memory() == 30 * _MIB
    limit(files / group, str(50 * _MIB), 60 * _MIB)
    assert free_memory() == 0


def test_without_a_report_there_is_none(files: Path) -> None:
    (files.parent / "meminfo").unlink()
    assert free_memory() == 0
