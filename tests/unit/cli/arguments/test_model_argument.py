from pathlib import Path

import pytest

from intarsia.cli.arguments.model import ModelArgument
from intarsia.support.errors import UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.onnx").write_bytes(b"\x08\x0a")
    (tmp_path / "odd@name.onnx").write_bytes(b"\x08\x0a")
    (tmp_path / "renamed.onnx").write_bytes(b"PK\x03\x04...")
    (tmp_path / "saved").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("text", "place", "target", "name"),
    [
        ("m.onnx", "m.onnx", "", "m"),
        ("m.onnx@openvino", "m.onnx", "openvino", "m"),
        ("m.onnx@cpu -toolchain=openvino", "m.onnx", "cpu -toolchain=openvino", "m"),
        ("odd@name.onnx", "odd@name.onnx", "", "odd@name"),
        ("odd@name.onnx@openvino", "odd@name.onnx", "openvino", "odd@name"),
        ("missing@here.onnx", "missing@here.onnx", "", "missing@here"),
        ("zoo:mnist", "zoo:mnist", "", "mnist"),
        ("zoo:mnist@reference", "zoo:mnist", "reference", "mnist"),
        ("saved", "saved", "", "saved"),
        ("renamed.onnx", "renamed.onnx", "", "renamed"),
    ],
)
def test_parts(text: str, place: str, target: str, name: str) -> None:
    argument = ModelArgument.parse(text)
    assert (argument.source, argument.target, argument.name) == (place, target, name)


@pytest.mark.parametrize(
    ("text", "is_artifact"),
    [("m.onnx", False), ("renamed.onnx", True), ("saved", True), ("zoo:mnist", False), ("none", False)],
)
def test_artifacts_are_known_by_content(text: str, is_artifact: bool) -> None:
    assert ModelArgument.parse(text).is_artifact is is_artifact


def test_a_file_comes_before_the_zoo(folder: Path) -> None:
    (folder / "zoo:m").write_bytes(b"PK\x03\x04")
    argument = ModelArgument.parse("zoo:m")
    assert argument.is_artifact
    assert not argument.is_zoo


def test_what_does_not_go_with_an_artifact() -> None:
    argument = ModelArgument.parse("saved")
    argument.refuse_choices(toolchain=None, threads=None)
    with pytest.raises(UsageError) as caught:
        argument.refuse_choices(toolchain=None, threads=2)
    assert str(caught.value) == (
        "--threads cannot be used with saved: it is an artifact, compiled already\n"
        "help: pass --threads to intarsia tune, or use the model itself"
    )
