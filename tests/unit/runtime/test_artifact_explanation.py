"""The explanation in an artifact: kept, checked, and read without loading anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fake_kernels import f32, fake, plan_of

from intarsia.runtime.artifact_format import ArtifactFormat
from intarsia.runtime.artifact_load import load, read_explanation
from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import RunKernel
from intarsia.support.errors import ArtifactError

TEXT = '{"why": "because it is fast, \N{GREEK SMALL LETTER MU}s"}'

pytestmark = pytest.mark.usefixtures("fake_toolchain")


def example(explanation: str | None = None) -> Executable:
    a = f32("x", 4)
    plan = plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a])
    return Executable(plan, [fake("double")], explanation=explanation)


@pytest.mark.parametrize("form", list(ArtifactFormat))
def test_it_is_kept_and_goes_on_with_the_executable(tmp_path: Path, form: ArtifactFormat) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    example().save(first, explanation=TEXT, format=form)
    assert read_explanation(first) == TEXT
    load(first).save(second, format=form)
    assert read_explanation(second) == TEXT


def test_a_given_one_replaces_the_one_it_has(tmp_path: Path) -> None:
    example("old").save(tmp_path / "a", explanation="new")
    assert read_explanation(tmp_path / "a") == "new"


def test_there_need_be_none(tmp_path: Path) -> None:
    example().save(tmp_path / "a")
    assert read_explanation(tmp_path / "a") is None


def test_nothing_but_the_explanation_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    example(TEXT).save(folder, format=ArtifactFormat.DIRECTORY)
    (folder / "program.txt").write_text("changed")
    assert read_explanation(folder) == TEXT


@pytest.mark.parametrize(
    ("data", "problem"), [(b"{}", "explanation.json has 2 bytes, expected"), (None, "is missing")]
)
def test_damage_is_noticed(tmp_path: Path, data: bytes | None, problem: str) -> None:
    folder = tmp_path / "a"
    example(TEXT).save(folder, format=ArtifactFormat.DIRECTORY)
    file = folder / "explanation.json"
    if data is None:
        file.unlink()
    else:
        file.write_bytes(data)
    for read in (read_explanation, load):
        with pytest.raises(ArtifactError, match=problem):
            read(folder)
