"""`--untrusted`, `--require-signature`, `keygen` and `sign` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.command_line import within
from tests.forged_artifacts import replace_kernels, save
from tests.unit.runtime.test_artifact_trust import calls_system

pytestmark = pytest.mark.quick_tests(3, also=["test_signing"])


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    folder = save(tmp_path / "m.intarsia", "native")
    replace_kernels(folder, calls_system(f"id > {tmp_path}/owned"))
    return folder


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("command", ["run", "verify", "bench"])
def test_a_forged_artifact(forged: Path, tmp_path: Path, command: str) -> None:
    options = ("--budget", "0.01") if command == "bench" else ()
    refused = within([command, str(forged), *options])
    assert refused.code == 3
    assert "it calls 'system', which no kernel of Intarsia needs" in refused.err
    assert within([command, str(forged), "--untrusted", *options]).code == 0
    assert not (tmp_path / "owned").exists()


def test_signing(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    folder = save(tmp_path / "m.intarsia", "reference")
    assert within(["keygen", str(tmp_path / "mine")]).code == 0
    required = ("run", str(folder), "--require-signature", str(tmp_path / "mine.pub"))
    unsigned = within(required)
    assert (unsigned.code, "is not signed" in unsigned.err) == (3, True)
    assert within(["sign", str(folder), "--key", str(tmp_path / "mine.key")]).code == 0
    assert within(required).code == 0


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("option", [("--untrusted",), ("--require-signature", "k.pub")])
@pytest.mark.parametrize("command", ["run", "verify", "bench"])
def test_a_model_is_not_taken_for_a_checked_artifact(command: str, option: tuple[str, ...]) -> None:
    outcome = within([command, "zoo:bert_tiny", *option])
    assert outcome.code == 2
    assert f"{option[0]} cannot be used with zoo:bert_tiny: it is not an artifact" in outcome.err
