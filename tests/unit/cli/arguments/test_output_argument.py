import os
import zipfile
from pathlib import Path

import pytest

from intarsia.cli.arguments.output import check_artifact_place, check_writable
from intarsia.support.errors import OutputError


def message(check: object, path: Path) -> str:
    assert callable(check)
    with pytest.raises(OutputError) as caught:
        check(path)
    return str(caught.value)


def test_a_good_place_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"PK\x03\x04, and then it was cut off")
    (tmp_path / "empty").touch()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for name in ("old", "new", "empty"):
        check_writable(tmp_path / name)
        check_artifact_place(tmp_path / name, "zoo:mnist")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_that_is_no_artifact_is_in_the_way(tmp_path: Path) -> None:
    thesis, archive = tmp_path / "thesis.txt", tmp_path / "photos.zip"
    thesis.write_text("years of work")
    with zipfile.ZipFile(archive, "w") as photos:
        photos.writestr("cat.jpg", b"cat")
    for path in (thesis, archive):
        assert message(lambda place: check_artifact_place(place, "zoo:mnist"), path) == (
            f"cannot write {path}: the existing file is not an artifact\n"
            "help: give the name of a new file, or remove this one"
        )


def test_bad_places(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    missing, inside, pipe = tmp_path / "none" / "a", tmp_path / "file" / "a", tmp_path / "pipe"
    assert message(check_writable, missing) == (
        f"cannot write {missing}: no such file or directory\nhelp: create the folder first"
    )
    assert message(check_writable, inside).startswith(f"cannot write {inside}: not a directory")
    assert message(check_writable, pipe) == (
        f"cannot write {pipe}: it is not a regular file\nhelp: give the name of a new file"
    )
    assert message(check_writable, Path()) == (
        "cannot write .: it is a folder\nhelp: give the name of a new file"
    )


def test_folders_in_the_way(tmp_path: Path) -> None:
    for name, content in {"empty": [], "artifact": ["manifest.json", "x"], "other": ["x"]}.items():
        (tmp_path / name).mkdir()
        for file in content:
            (tmp_path / name / file).touch()
    check_artifact_place(tmp_path / "empty", "zoo:mnist")
    check_artifact_place(tmp_path / "artifact", "zoo:mnist")
    assert message(lambda path: check_artifact_place(path, "zoo:mnist"), tmp_path / "other") == (
        f"cannot write {tmp_path / 'other'}: the folder has other files\n"
        "help: give the name of a new or empty folder"
    )


def test_the_model_itself_is_not_replaced(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"model")
    (tmp_path / "link.onnx").symlink_to(model)
    for name in ("model.onnx", "link.onnx"):
        with pytest.raises(OutputError) as caught:
            check_artifact_place(tmp_path / name, str(model))
        assert caught.value.problem == f"cannot write {tmp_path / name}: it is the input file"
    assert model.read_bytes() == b"model"
