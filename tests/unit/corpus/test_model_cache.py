from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from corpus import model_cache
from corpus.model_cache import Entry, cache_folder, digest_of
from corpus.recipe import recipes

SOURCE = Path(model_cache.__file__).parent


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package's files in a folder in which they can be changed."""
    folder = tmp_path / "corpus"
    shutil.copytree(SOURCE, folder)
    monkeypatch.setattr(model_cache, "_HERE", folder)
    model_cache._plain.cache_clear()
    monkeypatch.setattr(model_cache, "_file_of", lambda recipe: folder / "recipes" / "recommender.py")
    model_cache._sources.cache_clear()
    return folder


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    model_cache._plain.cache_clear()
    model_cache._sources.cache_clear()


def test_a_recipe_s_own_code_changes_its_digest_only(copied: Path) -> None:
    ncf, dlrm = (digest_of(recipes()[name], None) for name in ("ncf", "dlrm"))
    change(copied / "recipes" / "recommender.py", "integers(0, 200, 7)", "integers(0, 200, 8)")
    assert digest_of(recipes()["ncf"], None) != ncf
    assert digest_of(recipes()["dlrm"], None) == dlrm


@pytest.mark.parametrize("name", ["constraints.txt", "networks/sequences.py", "exporting.py", "inputs.py"])
def test_what_a_recipe_uses_changes_its_digest(copied: Path, name: str) -> None:
    before = digest_of(recipes()["ncf"], None)
    file = copied / name
    file.write_text(file.read_text() + "\nADDED = 1\n")
    model_cache._plain.cache_clear()
    assert digest_of(recipes()["ncf"], None) != before


def test_comments_and_what_a_recipe_does_not_use_leave_its_digest(copied: Path) -> None:
    before = digest_of(recipes()["ncf"], None)
    change(copied / "recipes" / "recommender.py", "from __future__", "# a comment\nfrom __future__")
    change(copied / "networks" / "vision.py", "0.18215", "0.2")
    assert digest_of(recipes()["ncf"], None) == before


def test_drawn_models_have_digests_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recipe = recipes()["ncf"]
    assert len({digest_of(recipe, seed) for seed in (None, 0, 1)}) == 3
    monkeypatch.setenv("INTARSIA_CORPUS", str(tmp_path))
    assert cache_folder() == tmp_path


def test_a_folder_with_a_failure_is_not_built(tmp_path: Path) -> None:
    (tmp_path / "failed.txt").write_text("ValueError: no")
    assert not Entry(tmp_path).is_built
    assert Entry(tmp_path).failure == "ValueError: no"
