"""Files are written whole or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from intarsia.support.errors import OutputError
from intarsia.support.files import write_text, written_whole


def write_half(path: Path, error: BaseException) -> None:
    with written_whole(path) as temporary:
        temporary.write_text("half")
        raise error


def test_a_file_replaces_the_old_one_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with written_whole(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "artifact"
    for content in ("old", "new"):
        with written_whole(path) as temporary:
            temporary.mkdir()
            (temporary / "file").write_text(content)
    assert (path / "file").read_text() == "new"
    assert [item.name for item in tmp_path.iterdir()] == ["artifact"]


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
