"""Signed artifacts: who may have changed one, and what loading says about it."""

from __future__ import annotations

import shutil
import stat
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.fake_kernels import f32, fake, plan_of
from tests.forged_artifacts import manifest_of, replace_file, seal

from intarsia.runtime.artifact_format import ArtifactFormat
from intarsia.runtime.artifact_load import load
from intarsia.runtime.artifact_sign import sign_artifact
from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import RunKernel
from intarsia.runtime.signature import generate_keys
from intarsia.support.errors import ArtifactError, OutputError, UsageError

pytest.importorskip("cryptography")
pytestmark = pytest.mark.usefixtures("fake_toolchain")

X = np.arange(4, dtype=np.float32)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the keys mine.key, mine.pub, other.key, other.pub."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("mine", "other"):
        generate_keys(folder / f"{name}.key", folder / f"{name}.pub")
    return folder


@pytest.fixture(params=ArtifactFormat)
def artifact(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    a = f32("x", 4)
    exe = Executable(plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a]), [fake("double", blob="b")])
    exe.save(tmp_path / "m", format=request.param)
    return tmp_path / "m"


def refusal(path: Path, public: Path, error: type[Exception] = ArtifactError) -> str:
    with pytest.raises(error) as caught:
        load(path, require_signature=public)
    return str(caught.value)


def test_a_signed_artifact_loads_with_the_key_and_without(artifact: Path, keys: Path) -> None:
    sign_artifact(artifact, keys / "mine.key")
    for options in ({"require_signature": keys / "mine.pub"}, {}):
        np.testing.assert_array_equal(load(artifact, **options)(X), X * 2)  # type: ignore[arg-type]


def test_signing_again_replaces_the_signature(artifact: Path, keys: Path) -> None:
    sign_artifact(artifact, keys / "other.key")
    sign_artifact(artifact, keys / "mine.key")
    load(artifact, require_signature=keys / "mine.pub")
    assert "signed by another key" in refusal(artifact, keys / "other.pub")


def test_an_artifact_without_signature(artifact: Path, keys: Path) -> None:
    assert refusal(artifact, keys / "mine.pub") == (
        f"{artifact} is not signed\nhelp: intarsia sign ARTIFACT --key KEY signs it with your own key"
    )


def test_an_artifact_signed_by_another_key(artifact: Path, keys: Path) -> None:
    sign_artifact(artifact, keys / "other.key")
    assert refusal(artifact, keys / "mine.pub") == (
        f"the signature of {artifact} does not fit {keys}/mine.pub: it is signed by another key\n"
        "help: get the artifact or the key again from whoever signed it"
    )


@pytest.mark.parametrize("artifact", [ArtifactFormat.DIRECTORY], indirect=True)
def test_an_artifact_changed_after_it_was_signed(artifact: Path, keys: Path) -> None:
    sign_artifact(artifact, keys / "mine.key")
    replace_file(artifact, "kernels/00.blob", b"other")
    assert "it was changed after it was signed" in refusal(artifact, keys / "mine.pub")


@pytest.mark.parametrize("artifact", [ArtifactFormat.DIRECTORY], indirect=True)
def test_a_file_changed_under_a_signed_manifest(artifact: Path, keys: Path) -> None:
    sign_artifact(artifact, keys / "mine.key")
    (artifact / "kernels/00.blob").write_bytes(b"x")
    assert "the SHA-256 of kernels/00.blob is" in refusal(artifact, keys / "mine.pub")


@pytest.mark.parametrize("artifact", [ArtifactFormat.DIRECTORY], indirect=True)
def test_the_signature_of_another_artifact(artifact: Path, keys: Path) -> None:
    twin = shutil.copytree(artifact, artifact.with_name("twin"))
    seal(twin, {**manifest_of(twin), "plan_constants": []})
    sign_artifact(artifact, keys / "mine.key")
    shutil.copy(artifact / "signature.json", twin)
    assert "it was changed after it was signed" in refusal(twin, keys / "mine.pub")


@pytest.mark.parametrize("artifact", [ArtifactFormat.DIRECTORY], indirect=True)
@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"format": 1}', b"[" * 100_000, b"\xff", b'{"format": "intarsia-signature"}']
)
def test_a_damaged_signature(artifact: Path, keys: Path, content: bytes) -> None:
    (artifact / "signature.json").write_bytes(content)
    assert f"signature.json of {artifact}" in refusal(artifact, keys / "mine.pub")


def test_a_damaged_artifact_is_not_signed(artifact: Path, keys: Path) -> None:
    content = b"x" * 99
    if artifact.is_dir():
        (artifact / "program.txt").write_bytes(content)
    else:
        artifact.write_bytes(artifact.read_bytes().replace(b'{"function"', b'{"Function"', 1))
    with pytest.raises(ArtifactError, match="is damaged"):
        sign_artifact(artifact, keys / "mine.key")


def test_keys_of_another_kind(artifact: Path, keys: Path) -> None:
    sign_artifact(artifact, keys / "mine.key")
    help_line = "\nhelp: intarsia keygen makes one"
    expected = f"{keys}/mine.key is no public Ed25519 key in PEM form{help_line}"
    assert refusal(artifact, keys / "mine.key", UsageError) == expected
    expected = f"cannot read the key {keys}/no.pub: no such file or directory{help_line}"
    assert refusal(artifact, keys / "no.pub", UsageError) == expected
    with pytest.raises(UsageError, match="is no private Ed25519 key in PEM form"):
        sign_artifact(artifact, keys / "mine.pub")


def test_a_private_key_is_its_owners_and_never_replaced(keys: Path) -> None:
    assert stat.S_IMODE((keys / "mine.key").stat().st_mode) == 0o600
    content = (keys / "mine.key").read_bytes()
    with pytest.raises(OutputError, match="there is a file already"):
        generate_keys(keys / "mine.key", keys / "new.pub")
    assert (keys / "mine.key").read_bytes() == content
    assert not (keys / "new.pub").exists()


def test_without_the_package_nothing_passes_unchecked(
    artifact: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_artifact(artifact, keys / "mine.key")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert refusal(artifact, keys / "mine.pub", UsageError) == (
        "signing and checking signatures needs the package cryptography\n"
        "help: pip install 'intarsia[signing]'"
    )
