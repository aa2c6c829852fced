"""Artifacts that are damaged, unsafe, or made elsewhere: exact messages, and nothing is executed."""

import hashlib
import json
import os
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fake_kernels import FakeToolchain, f32, fake, plan_of

from intarsia.runtime.artifact_format import ArtifactFormat
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.runtime.plan import RunKernel
from intarsia.runtime.provenance import Provenance
from intarsia.support.errors import ArtifactError, IntarsiaError, MissingToolchainError, UsageError
from intarsia.target.host import Host

pytestmark = pytest.mark.usefixtures("fake_toolchain")

EXPECTED = "\nhelp: expected a folder or zip that Executable.save wrote"
AGAIN = "\nhelp: copy or download it again, or save it again with Executable.save"


@pytest.fixture(autouse=True)
def _nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_kernel(self: FakeToolchain, source: object, blob: object = None) -> None:
        raise AssertionError("a kernel was loaded before all was checked")

    monkeypatch.setattr(FakeToolchain, "load", load_kernel)


def saved(path: Path, form: ArtifactFormat = ArtifactFormat.DIRECTORY, isa: tuple[str, ...] = ()) -> Path:
    a = f32("x", 4)
    kernel = fake("weighted", {"weight": np.ones(4, np.float32)}, "compiled")
    plan = plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a])
    exe = Executable(plan, [kernel], provenance=Provenance("text", isa=isa), kernel_names=["k"])
    exe.save(path, format=form)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path / "m")


def message(path: Path, error: type[IntarsiaError] = ArtifactError, locked: bool = False) -> str:
    with pytest.raises(error) as caught:
        load(path, locked)
    assert type(caught.value) is error
    return str(caught.value)


def forge(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest and give it the right digest."""
    file = folder / "manifest.json"
    record = json.loads(file.read_text())
    del record["digest"]
    change(record)
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    file.write_text(json.dumps({**record, "digest": digest}))


def test_nothing_there(tmp_path: Path) -> None:
    assert message(tmp_path / "x") == f"{tmp_path}/x does not exist{EXPECTED}"


def test_a_file_that_is_no_zip(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello")
    assert message(tmp_path / "x") == f"{tmp_path}/x is no artifact: File is not a zip file{EXPECTED}"


def test_a_folder_and_a_zip_without_manifest(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("readme", "hello")
    for kind in ("folder", "zip"):
        expected = f"{tmp_path}/{kind} is no artifact: the {kind} has no manifest.json{EXPECTED}"
        assert message(tmp_path / kind) == expected


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_truncated_zip(tmp_path: Path, part: float) -> None:
    path = saved(tmp_path / "m", ArtifactFormat.ZIP)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    assert message(path) == f"{path} is damaged: the file is cut off: it does not end as a zip does{AGAIN}"


@pytest.mark.parametrize("text", ["{", "\udcff", "[" * 100_000, ""])
def test_a_manifest_that_is_not_json(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_bytes(text.encode(errors="surrogateescape"))
    assert message(folder) == f"{folder} is damaged: manifest.json is not JSON{AGAIN}"


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "zip"}'])
def test_another_kind_of_manifest(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    expected = f"{folder} is no artifact: manifest.json does not say format intarsia-artifact"
    assert message(folder) == expected


@pytest.mark.parametrize(("version", "shown"), [(3, "3"), ("1", '"1"'), (None, "null")])
def test_another_format_version(folder: Path, version: object, shown: str) -> None:
    forge(folder, lambda record: record.update(version=version))
    assert message(folder) == (
        f"{folder} has format version {shown}, expected 1 or 2\n"
        "help: load it with the version of Intarsia that saved it, or build it again"
    )


def test_a_changed_manifest(folder: Path) -> None:
    file = folder / "manifest.json"
    file.write_text(file.read_text().replace('"slots": 2', '"slots": 3'))
    expected = f"{folder} is damaged: the digest of manifest.json does not fit its content{AGAIN}"
    assert message(folder) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda r: r.pop("plan"), 'manifest.json has no "plan"'),
        (lambda r: r.update(kernels={}), "manifest.json.kernels is {}, expected a list"),
        (lambda r: r["kernels"][0].update(target=1), "manifest.json.kernels[0].target is 1, expected a text"),
        (
            lambda r: r["constants"][0].update(dtype="float31"),
            'manifest.json.constants[0].dtype is "float31", expected an element type',
        ),
        (
            lambda r: r["constants"][0].update(shape=[True]),
            "manifest.json.constants[0].shape[0] is true, expected a whole number, 0 or more",
        ),
    ],
)
def test_a_manifest_that_is_not_what_it_should_be(
    folder: Path, change: Callable[[dict[str, Any]], object], expected: str
) -> None:
    forge(folder, change)
    assert message(folder) == f"{folder} is damaged: {expected}{AGAIN}"


def test_a_manifest_that_is_nested_too_deeply(folder: Path) -> None:
    deep: Any = 0
    for _ in range(600):
        deep = [deep]
    forge(folder, lambda record: record["plan"].update(output_structure=deep))
    assert message(folder) == f"{folder} is damaged: the output structure is nested too deeply{AGAIN}"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda r: r["files"].pop("program.txt"),
            "manifest.json does not list the file 'program.txt'",
        ),
        (
            lambda r: r["kernels"][0].update(source="kernels/7.onnx"),
            "manifest.json does not list the file 'kernels/7.onnx'",
        ),
        (lambda r: r["kernels"][0]["weights"].update(weight=1), "it refers to a constant beyond 1"),
        (
            lambda r: r["plan"]["blocks"]["main"].update(results=[5]),
            'block "main": slot 5 is read before it is written',
        ),
        (lambda r: r["files"].update(extra={"size": 1, "sha256": ""}),
         "extra is missing"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_each_other(
    folder: Path, change: Callable[[dict[str, Any]], object], expected: str
) -> None:
    forge(folder, change)
    assert message(folder) == f"{folder} is damaged: {expected}{AGAIN}"


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../secret", "kernels/../../secret", "a\\..\\b", "C:x", "", "a//b", "./a", "a\0b"]
)
def test_names_that_lead_outside(folder: Path, name: str) -> None:
    forge(folder, lambda record: record["files"].update({name: {"size": 0, "sha256": ""}}))
    expected = f"{folder} is unsafe: it refers to {name!r}, expected a plain name inside it"
    assert message(folder) == expected


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret"])
def test_zip_members_that_lead_outside(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path / "m", ArtifactFormat.ZIP)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, "x")
    expected = f"{path} is unsafe: it refers to {name!r}, expected a plain name inside it"
    assert message(path) == expected


def test_a_zip_member_twice(tmp_path: Path) -> None:
    path = saved(tmp_path / "m", ArtifactFormat.ZIP)
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
        warnings.simplefilter("ignore")  # zipfile warns of what this test is about
        archive.writestr("program.txt", "other")
    assert message(path) == f"{path} is unsafe: it has program.txt twice"


def test_a_zip_member_that_is_a_link(tmp_path: Path) -> None:
    path = saved(tmp_path / "m", ArtifactFormat.ZIP)
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert message(path) == f"{path} is unsafe: link is a link"


def test_a_compressed_zip_member(tmp_path: Path) -> None:
    path = saved(tmp_path / "m", ArtifactFormat.ZIP)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(1000))
    assert message(path) == f"{path} is damaged: bomb is compressed, expected stored{AGAIN}"


def test_links_in_a_folder(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (folder / "program.txt").rename(outside)
    (folder / "program.txt").symlink_to(outside)
    assert message(folder) == f"{folder} is unsafe: program.txt is a link"


def test_a_linked_folder_inside(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (folder / "kernels").rename(outside)
    (folder / "kernels").symlink_to(outside)
    assert message(folder) == f"{folder} is unsafe: kernels is a link"


def test_a_device_instead_of_a_file(folder: Path) -> None:
    (folder / "program.txt").unlink()
    os.mkfifo(folder / "program.txt")
    assert message(folder) == f"{folder} is damaged: program.txt is not a file{AGAIN}"


@pytest.mark.parametrize(
    "name", ["constants.safetensors", "kernels/00_fake.onnx", "kernels/00.blob", "program.txt"]
)
def test_a_changed_byte(folder: Path, name: str) -> None:
    file = folder / name
    right = file.read_bytes()
    wrong = bytes([right[0] ^ 1, *right[1:]])
    file.write_bytes(wrong)
    found, expected = (hashlib.sha256(data).hexdigest() for data in (wrong, right))
    assert message(folder) == (
        f"{folder} is damaged: the SHA-256 of {name} is {found}, expected {expected}{AGAIN}"
    )


def test_a_changed_byte_in_a_zip(tmp_path: Path) -> None:
    path = saved(tmp_path / "m", ArtifactFormat.ZIP)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'{"function"', b'{"Function"', 1))
    assert message(path) == (
        f"{path} is damaged: cannot read kernels/00_fake.onnx: its checksum is wrong{AGAIN}"
    )


def test_zips_with_a_damaged_directory(tmp_path: Path) -> None:
    path = saved(tmp_path / "m", ArtifactFormat.ZIP)
    data = path.read_bytes()
    entry = data.index(b"PK\x01\x02")
    newer = data[: entry + 6] + b"\xff" + data[entry + 7 :]
    encrypted = data[: entry + 8] + b"\x01" + data[entry + 9 :]
    larger = data[: entry + 20] + b"\xff\xff\xff\x7f" * 2 + data[entry + 28 :]
    elsewhere = data[:entry] + b"XX" + data[entry + 2 :]
    expected = {
        newer: "the zip's list of its files is wrong: zip file version 25.5",
        encrypted: "program.txt is encrypted, expected stored",
        larger: f"program.txt claims 2147483647 bytes, but the whole zip has {len(data)}",
        elsewhere: "the zip's list of its files is wrong: Bad magic number for central directory",
    }
    for content, problem in expected.items():
        path.write_bytes(content)
        assert message(path) == f"{path} is damaged: {problem}{AGAIN}"


@pytest.mark.parametrize("error", [MemoryError(), struct.error("unpack requires 4 bytes"), OverflowError()])
def test_whatever_reading_raises(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    zipped = saved(tmp_path / "zip", ArtifactFormat.ZIP)
    reason = {MemoryError: "it does not fit into memory", OverflowError: "OverflowError"}.get(
        type(error), str(error)
    )
    monkeypatch.setattr(np, "fromfile", failing)
    assert message(folder) == f"{folder} is damaged: cannot read manifest.json: {reason}{AGAIN}"
    monkeypatch.setattr(zipfile.ZipFile, "open", failing)
    assert message(zipped) == f"{zipped} is damaged: cannot read manifest.json: {reason}{AGAIN}"


def test_a_file_that_may_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(np, "fromfile", denied)
    assert message(folder) == (
        f"cannot read manifest.json of {folder}: permission denied\n"
        "help: ask its owner for the right to read it"
    )


def test_a_path_that_cannot_be_one(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 300)
    assert message(path) == f"cannot read {path}: File name too long{EXPECTED}"


def test_a_file_of_constants_that_is_not_what_its_digest_promises(folder: Path) -> None:
    file = folder / "constants.safetensors"
    file.write_bytes(b"\xff" * 8)
    entry = {"size": 8, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    forge(folder, lambda record: record["files"].update({"constants.safetensors": entry}))
    expected = f"constants.safetensors of {folder} is damaged: its header is cut off"
    assert message(folder) == expected


def test_a_shorter_and_a_missing_file(folder: Path) -> None:
    (folder / "program.txt").write_text("tex")
    assert message(folder) == f"{folder} is damaged: program.txt has 3 bytes, expected 4{AGAIN}"
    (folder / "program.txt").unlink()
    assert message(folder) == f"{folder} is damaged: program.txt is missing{AGAIN}"


def test_required_instruction_sets(tmp_path: Path) -> None:
    path = saved(tmp_path / "m", isa=("avx1024", "amx_quantum"))
    assert message(path) == (f"{path} needs the instruction sets avx1024, amx_quantum, which this CPU lacks")


def test_an_unknown_toolchain(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(TOOLCHAINS._values, "fake")
    found = message(folder, MissingToolchainError)
    assert found.startswith(f'there is no toolchain "fake" here\n  needed by {folder}\nhelp: known: ')


def test_a_toolchain_that_is_not_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeToolchain, "reason", "No module named 'fake'")
    assert message(folder, MissingToolchainError) == (
        "the toolchain \"fake\" cannot be used here: No module named 'fake'\n"
        f"  needed by {folder}\n"
        "help: pip install 'intarsia[fake]'"
    )


LOCKED = "\nhelp: load it without locked=True to compile it again here"


def test_locked_refuses_another_version(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeToolchain, "version", "2.0")
    expected = f'kernel "k" of {folder} was compiled by fake 1.0, found 2.0{LOCKED}'
    assert message(folder, locked=True) == expected


def test_locked_refuses_another_cpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Host.detect()
    other = Host("abacus", here.architecture, (*here.isa, "avx1024"), 1, 0, 0, 0, "", "")
    monkeypatch.setattr(Host, "detect", lambda: other)
    expected = f'kernel "k" of {folder} was compiled on a CPU that differs from this one in avx1024{LOCKED}'
    assert message(folder, locked=True) == expected
    monkeypatch.setattr(Host, "detect", lambda: Host("abacus", "z80", here.isa, 1, 0, 0, 0, "", ""))
    expected = f'kernel "k" of {folder} was compiled for {here.architecture}, found z80{LOCKED}'
    assert message(folder, locked=True) == expected


def test_what_is_no_path() -> None:
    with pytest.raises(UsageError) as caught:
        load(None)  # type: ignore[arg-type]  # that is the mistake
    assert str(caught.value) == 'load takes a path, found NoneType\nhelp: such as "model.intarsia"'
