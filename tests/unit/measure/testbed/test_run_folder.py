"""Folders of runs: whoever is killed leaves one, which the next run removes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.unit.measure.worker_pool.live_processes import nothing_left_behind

from intarsia.measure.testbed.run_folder import PREFIX, RunFolder

KILLED = """
import os, signal, sys
from pathlib import Path
from intarsia.measure.testbed.run_folder import RunFolder
for _ in range(2):
    folder = RunFolder.open(Path(sys.argv[1]))
    (folder.path / "built").mkdir()
    (folder.path / "built" / "file").touch()
print("open", flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


def folders(parent: Path) -> set[Path]:
    return set(parent.iterdir())


def test_a_run_removes_its_folder(tmp_path: Path) -> None:
    with nothing_left_behind():
        folder = RunFolder.open(tmp_path)
        assert folders(tmp_path) == {folder.path}
        (folder.path / "inner").mkdir()
        (folder.path / "inner" / "file").touch()
        (folder.path / "file").touch()
        folder.close()
        assert not folders(tmp_path)


@pytest.mark.processes
def test_folders_of_killed_runs_are_removed_and_those_of_others_are_not(tmp_path: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", KILLED, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "open\n"
    theirs = folders(tmp_path)
    assert len(theirs) == 2
    mine = RunFolder.open(tmp_path)
    assert folders(tmp_path) == {*theirs, mine.path}
    run.communicate("go on\n", timeout=60)
    assert run.returncode == -signal.SIGKILL
    another = RunFolder.open(tmp_path)
    assert folders(tmp_path) == {mine.path, another.path}
    for folder in (mine, another):
        folder.close()


def test_a_run_that_was_killed_before_it_had_its_lock(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}empty").mkdir()
    RunFolder.open(tmp_path).close()
    assert not folders(tmp_path)


def test_what_only_looks_like_a_folder_of_a_run_stays(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}file").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "lock").touch()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")
    unlocked = tmp_path / f"{PREFIX}full"
    unlocked.mkdir()
    (unlocked / "file").touch()
    before = folders(tmp_path)
    RunFolder.open(tmp_path).close()
    assert folders(tmp_path) == before
    assert (tmp_path / "elsewhere" / "lock").exists()


def test_a_folder_of_another_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / f"{PREFIX}theirs"
    theirs.mkdir()
    (theirs / "lock").touch()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    RunFolder.open(tmp_path).close()
    assert folders(tmp_path) == {theirs}


def test_many_at_a_time(tmp_path: Path) -> None:
    """Each looks through the folders of the others while these are being made and removed."""
    lost: list[Path] = []

    def work() -> None:
        for _ in range(50):
            folder = RunFolder.open(tmp_path)
            (folder.path / "mine").touch()
            if not (folder.path / "lock").exists():
                lost.append(folder.path)
            folder.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not lost
    assert not folders(tmp_path)
