import copy
import json
import pickle
import struct
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fake_kernels import FakeKernel, FakeToolchain, f32, fake, plan_of

from intarsia.runtime.artifact_format import ArtifactFormat
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import TOOLCHAINS, KernelSource
from intarsia.runtime.plan import Branch, RunKernel, TensorInfo
from intarsia.runtime.provenance import Provenance
from intarsia.runtime.self_test import SelfTest
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.errors import ArtifactError, OutputError, UsageError
from intarsia.target.host import Host

pytestmark = pytest.mark.usefixtures("fake_toolchain")

X = np.arange(4, dtype=np.float32)
WEIGHT = np.full(4, 3, np.float32)


def example(blob: str | None = None) -> Executable:
    """A program for y = x * weight + constant, with everything that an artifact can hold."""
    a = f32("x", 4)
    steps = [RunKernel(0, (0,), (1,)), RunKernel(1, (1, 2), (3,))]
    provenance = Provenance(
        "def @main(x)", (WEIGHT, X), "tiny", {"cpu_model": "abacus", "isa": ["avx"]}, (), "intarsia test"
    )
    return Executable(
        plan_of(steps, [a], [3], [a] * 4, constants=[(2, 0)]),
        [fake("weighted", {"weight": WEIGHT}, blob), fake("add")],
        [X],
        provenance,
        ["weigh", "sum"],
        SelfTest((X,), (X * 4,)),
    )


def content(path: Path) -> dict[str, bytes]:
    """All files of an artifact."""
    if path.is_dir():
        return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def manifest(path: Path) -> Any:
    return json.loads(content(path)["manifest.json"])


@pytest.mark.parametrize("form", list(ArtifactFormat))
def test_an_executable_comes_back_whole(tmp_path: Path, form: ArtifactFormat) -> None:
    path = tmp_path / "model.intarsia"
    exe = example()
    exe.save(path, format=form)
    found = load(path)
    np.testing.assert_array_equal(found(X), exe(X))
    assert found.plan == exe.plan
    assert repr(found) == repr(exe)
    assert found.kernel_names == ("weigh", "sum")
    assert found.program == "def @main(x)"
    mine, its = exe.provenance, found.provenance
    assert (its.model, its.host, its.isa, its.created_by) == (
        mine.model,
        mine.host,
        mine.isa,
        mine.created_by,
    )
    np.testing.assert_array_equal(its.program_constants, mine.program_constants)
    assert found.self_test() == 0
    assert [kernel.source.target for kernel in found.kernels] == ["cpu -toolchain=fake"] * 2


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda exe: pickle.loads(pickle.dumps(exe))])
def test_an_executable_is_copied_and_pickled_by_its_artifact(
    copied: Callable[[Executable], Executable], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    exe = example(blob="compiled")
    found = copied(exe)
    assert not list(tmp_path.iterdir())
    expected = exe(X)
    exe.close()
    np.testing.assert_array_equal(found(X), expected)
    assert (found.plan, found.kernel_names, found.program) == (exe.plan, exe.kernel_names, "def @main(x)")
    assert found.self_test() == 0
    with pytest.raises(UsageError, match="the executable is closed"):
        copied(exe)


def test_what_is_in_it(tmp_path: Path) -> None:
    example("compiled").save(tmp_path / "m.intarsia")
    files = content(tmp_path / "m.intarsia")
    assert sorted(files) == [
        "constants.safetensors",
        "kernels/00.blob",
        "kernels/00_fake.onnx",
        "kernels/01_fake.onnx",
        "manifest.json",
        "program.txt",
        "selftest.safetensors",
    ]
    assert files["kernels/00.blob"] == b"compiled"
    assert files["program.txt"] == b"def @main(x)"


def test_both_forms_hold_the_same_files(tmp_path: Path) -> None:
    example().save(tmp_path / "a.zip")
    example().save(tmp_path / "b", format=ArtifactFormat.DIRECTORY)
    assert content(tmp_path / "a.zip") == content(tmp_path / "b")


def test_saving_twice_gives_equal_files(tmp_path: Path) -> None:
    example().save(tmp_path / "a.zip")
    example().save(tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_every_array_is_stored_once(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    example().save(tmp_path / "m", format=ArtifactFormat.DIRECTORY)
    stored = load_file(tmp_path / "m" / "constants.safetensors")
    assert sorted(map(list, stored.values())) == sorted(map(list, (WEIGHT, X)))
    record = manifest(tmp_path / "m")
    assert record["kernels"][0]["weights"] == {"weight": record["program_constants"][0]}
    assert record["plan_constants"] == [record["program_constants"][1]]


def test_the_name_decides_the_form(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    example().save(tmp_path / "file.intarsia")
    example().save(f"{tmp_path}/folder/")
    example().save(tmp_path / "there")
    assert (tmp_path / "file.intarsia").is_file()
    assert (tmp_path / "folder" / "manifest.json").is_file()
    assert (tmp_path / "there" / "manifest.json").is_file()


def test_an_artifact_is_replaced_even_by_itself(tmp_path: Path) -> None:
    for path in (f"{tmp_path}/folder/", str(tmp_path / "file.zip")):
        example().save(path)
        found = load(path)
        found.save(path)
        np.testing.assert_array_equal(found(X), X * 4)
        np.testing.assert_array_equal(load(path)(X), X * 4)


def is_mapped(array: Any) -> bool:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return isinstance(array, np.memmap)


def weights_of(path: Path, size: int, form: ArtifactFormat) -> Any:
    """The weight of a program, saved and loaded again."""
    a = f32("x", size)
    plan = plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a])
    kernel = fake("weighted", {"weight": np.ones(size, np.float32)})
    Executable(plan, [kernel]).save(path, format=form)
    return load(path).kernels[0].source.weights["weight"]


@pytest.mark.parametrize("form", ArtifactFormat)
def test_large_constants_are_mapped(tmp_path: Path, form: ArtifactFormat) -> None:
    weight = weights_of(tmp_path / "m", 1 << 18, form)
    assert is_mapped(weight)
    assert weight.ctypes.data % ALIGNMENT == 0
    assert weight.min() == weight.max() == 1


def test_members_of_a_zip_begin_at_cache_lines(tmp_path: Path) -> None:
    example("compiled").save(tmp_path / "m.zip")
    data = (tmp_path / "m.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "m.zip") as archive:
        assert archive.testzip() is None
        for member in archive.infolist():
            at = member.header_offset
            name, extra = struct.unpack_from("<HH", data, at + 26)
            assert (at + 30 + name + extra) % ALIGNMENT == 0


@pytest.mark.parametrize("form", ArtifactFormat)
def test_a_large_blob_is_used_where_it_lies(tmp_path: Path, form: ArtifactFormat) -> None:
    given: list[memoryview] = []

    class InPlace(FakeToolchain):
        def load_in_place(self, source: KernelSource, blob: memoryview) -> FakeKernel:
            given.append(blob)
            return self.load(source)

    example("compiled" * (1 << 18)).save(tmp_path / "m", format=form)
    with TOOLCHAINS.holding("fake", InPlace):
        load(tmp_path / "m")
    (blob,) = given
    assert bytes(blob) == b"compiled" * (1 << 18)
    assert is_mapped(blob.obj)


def test_a_changed_large_file_of_a_zip_is_found(tmp_path: Path) -> None:
    weights_of(tmp_path / "m", 1 << 18, ArtifactFormat.ZIP)
    data = bytearray((tmp_path / "m").read_bytes())
    data[data.index(np.ones(64, np.float32).tobytes())] ^= 1
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(ArtifactError, match=r"SHA-256 of constants\.safetensors is"):
        load(tmp_path / "m")


def test_small_files_of_a_folder_may_change_after_loading(tmp_path: Path) -> None:
    assert not is_mapped(weights_of(tmp_path / "small", 1000, ArtifactFormat.DIRECTORY))
    example("compiled").save(tmp_path / "m", format=ArtifactFormat.DIRECTORY)
    found = load(tmp_path / "m")
    for file in (tmp_path / "m").rglob("*.*"):
        with file.open("r+b") as stream:  # in place, as a mapping would see it
            stream.write(bytes(file.stat().st_size))
    np.testing.assert_array_equal(found(X), X * 4)
    assert found.self_test() == 0
    found.save(tmp_path / "again")
    np.testing.assert_array_equal(load(tmp_path / "again")(X), X * 4)


def test_a_blob_is_used_on_the_same_machine(tmp_path: Path) -> None:
    example("compiled").save(tmp_path / "m")
    kernel = load(tmp_path / "m", locked=True).kernels[0]
    assert isinstance(kernel, FakeKernel)
    assert kernel.from_blob == b"compiled"


def without_blob(path: Path) -> bool:
    exe = load(path)
    np.testing.assert_array_equal(exe(X), X * 4)
    kernel = exe.kernels[0]
    assert isinstance(kernel, FakeKernel)
    return kernel.from_blob is None


def test_a_blob_of_another_version_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example("compiled").save(tmp_path / "m")
    monkeypatch.setattr(FakeToolchain, "version", "2.0")
    assert without_blob(tmp_path / "m")


def test_a_blob_for_another_cpu_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example("compiled").save(tmp_path / "m")
    here = Host.detect()
    other = Host("abacus", here.architecture, ("none",), 1, 0, 0, 0, "", "")
    monkeypatch.setattr(Host, "detect", lambda: other)
    assert without_blob(tmp_path / "m")


def test_an_executable_with_branches_comes_back(tmp_path: Path) -> None:
    a, c = f32("x", 4), TensorInfo("c", "bool", ())
    branch = Branch(1, (RunKernel(0, (0,), (2,)),), (2,), (), (0,), (3,))
    Executable(plan_of([branch], [a, c], [3], [a, c, a, a]), [fake("double")]).save(tmp_path / "m")
    found = load(tmp_path / "m")
    np.testing.assert_array_equal(found(X, np.array(True)), X * 2)
    np.testing.assert_array_equal(found(X, np.array(False)), X)


def test_a_failed_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: FakeKernel) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeKernel, "blob", interrupted)
    for path in (tmp_path / "file", f"{tmp_path}/folder/"):
        with pytest.raises(KeyboardInterrupt):
            example().save(path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_artifact_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("years of work")
    with pytest.raises(OutputError) as caught:
        example().save(path)
    assert str(caught.value) == (
        f"cannot write {path}: there is a file that is no artifact\n"
        "help: give the name of a new file, or remove this one"
    )
    assert path.read_text() == "years of work"


def test_other_peoples_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("x")
    refusals = {
        f"{tmp_path}/mine": None,
        f"{tmp_path}/file": ArtifactFormat.DIRECTORY,
        f"{tmp_path}/mine/": ArtifactFormat.ZIP,
        f"{tmp_path}/no/folder": None,
    }
    messages = []
    for path, form in refusals.items():
        with pytest.raises(OutputError) as caught:
            example().save(path, format=form)
        messages.append(str(caught.value))
    assert messages == [
        (
            f"cannot write {tmp_path}/mine: the folder has other files\n"
            "help: give the name of a new or empty folder"
        ),
        f"cannot write {tmp_path}/file: it is a file\nhelp: give the name of a new folder",
        f"cannot write {tmp_path}/mine: it is a folder\nhelp: give the name of a new file",
        f"cannot write {tmp_path}/no/folder: no such file or directory\nhelp: create the folder first",
    ]
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
