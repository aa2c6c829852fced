"""Files are written whole or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from intarsia.support.errors import OutputError
from intarsia.support.files import write_atomically, write_text


def write_half(path: Path, error: BaseException) -> None:
    with write_atomically(path) as temporary:
        temporary.write_text("half")
        raise error


def test_a_file_replaces_the_old_one_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with write_atomically(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "artifact"
    for content in ("old", "new"):
        with write_atomically(path) as temporary:
            temporary.mkdir()
            (temporary / "file").write_text(content)
    assert (path / "file").read_text() == "new"
    assert [item.name for item in tmp_path.iterdir()] == ["artifact"]


def old_folder(path: Path) -> None:
    path.mkdir()
    (path / "file").write_text("old")


def replace_folder(path: Path) -> None:
    with write_atomically(path) as temporary:
        temporary.mkdir()
        (temporary / "file").write_text("new")


def failing(monkeypatch: pytest.MonkeyPatch, method: str, *failures: BaseException | None) -> None:
    """Let the first calls of a method of Path raise these, or succeed where there is none."""
    real, planned = getattr(Path, method), list(failures)

    def fake(self: Path, target: Path) -> Path:
        failure = planned.pop(0) if planned else None
        if failure is not None:
            raise failure
        moved: Path = real(self, target)
        return moved

    monkeypatch.setattr(Path, method, fake)


@pytest.mark.parametrize("name", ["artifact", "old", "a.old", "replaced"])
def test_a_folder_of_any_name_is_replaced(tmp_path: Path, name: str) -> None:
    old_folder(tmp_path / name)
    replace_folder(tmp_path / name)
    assert (tmp_path / name / "file").read_text() == "new"
    assert [item.name for item in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "Permission denied"), KeyboardInterrupt()])
def test_an_old_folder_comes_back_when_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "artifact"
    old_folder(path)
    failing(monkeypatch, "replace", error)
    with pytest.raises(OutputError if isinstance(error, OSError) else KeyboardInterrupt):
        replace_folder(path)
    assert (path / "file").read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["artifact"]


def test_an_interruption_right_after_the_old_folder_moved_brings_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "artifact", Path.rename
    old_folder(path)

    def interrupted(self: Path, target: Path) -> None:
        real(self, target)
        monkeypatch.setattr(Path, "rename", real)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_folder(path)
    assert (path / "file").read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["artifact"]


def test_an_old_folder_that_cannot_come_back_is_kept_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "artifact"
    old_folder(path)
    failing(monkeypatch, "replace", KeyboardInterrupt())
    failing(monkeypatch, "rename", None, OSError(errno.EACCES, "Permission denied"))
    with pytest.raises(OutputError) as caught:
        replace_folder(path)
    (aside,) = tmp_path.glob(".artifact.*/artifact.old")
    assert str(caught.value) == (
        f"cannot write {path}, and cannot move the old one back: permission denied\n"
        f"help: the old one is whole: move it from {aside} to {path}"
    )
    assert (aside / "file").read_text() == "old"


def test_a_second_interruption_does_not_remove_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "artifact"
    old_folder(path)
    failing(monkeypatch, "replace", KeyboardInterrupt())
    failing(monkeypatch, "rename", None, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        replace_folder(path)
    (aside,) = tmp_path.glob(".artifact.*/artifact.old")
    assert (aside / "file").read_text() == "old"


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()])
def test_nothing_is_left_of_an_interrupted_write(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(type(error)):
        write_half(path, error)
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


def test_a_missing_folder_is_named() -> None:
    with pytest.raises(OutputError) as caught:
        write_text(Path("/nowhere/at/all.txt"), "text")
    assert str(caught.value) == (
        "cannot write /nowhere/at/all.txt: no such file or directory\nhelp: create the folder first"
    )


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught:
        write_half(tmp_path / "a.txt", OSError(errno.ENOSPC, "No space left on device"))
    assert str(caught.value) == (
        f"cannot write {tmp_path / 'a.txt'}: no space left on device\n"
        "help: free some space or choose another disk, then run the same command again"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_device_is_not_replaced() -> None:
    with pytest.raises(OutputError) as caught:
        write_text(Path("/dev/null"), "text")
    assert caught.value.problem == "cannot write /dev/null: it is neither a file nor a folder"
    assert Path("/dev/null").is_char_device()
