"""Built models by digest of their recipe's source and the versions of the packages."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from corpus.recipe import Recipe

_HERE: Final = Path(__file__).parent
_SHARED: Final = ("draw.py", "recipe.py", "constraints.txt")


@dataclass(frozen=True, slots=True)
class Entry:
    """The entry of one model in the cache.

    Attributes:
        folder: Folder with `model.onnx`, `inputs.npz` and `model.json`, or with the error in `failed.txt`.
    """

    folder: Path

    @property
    def model(self) -> Path:
        """Path of the ONNX file."""
        return self.folder / "model.onnx"

    @property
    def inputs(self) -> Path:
        """Path of the .npz file of inputs; texts are pickled."""
        return self.folder / "inputs.npz"

    @property
    def failure(self) -> str | None:
        """Error of the build, or None."""
        file = self.folder / "failed.txt"
        return file.read_text() if file.exists() else None

    @property
    def is_built(self) -> bool:
        """Whether the model is complete: its record is written last."""
        return (self.folder / "model.json").exists()

    def record(self) -> dict[str, Any]:
        """Return the record of the model: its configuration, opset, nodes and domains."""
        return dict(json.loads((self.folder / "model.json").read_text()))


def cache_folder() -> Path:
    """Return the folder of built models: INTARSIA_CORPUS, or one in the user's cache folder."""
    if chosen := os.environ.get("INTARSIA_CORPUS"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "intarsia-corpus"


def entry_of(recipe: Recipe, seed: int | None) -> Entry:
    """Return the entry of a recipe's model, built or not."""
    return Entry(cache_folder() / f"{recipe.name}-{digest_of(recipe, seed)}")


def digest_of(recipe: Recipe, seed: int | None) -> str:
    """Return the digest of everything that the model of a recipe depends on."""
    files = {_HERE / name for name in _SHARED}
    source, helpers = _sources(_file_of(recipe), recipe.build.__name__)
    _add_imported(f"{source}\n{helpers}", files)
    parts = [recipe.name, str(seed), sys.version[:4], source, helpers]
    parts += [_plain(file) for file in sorted(files)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _file_of(recipe: Recipe) -> Path:
    return Path(inspect.getfile(recipe.build))


@cache
def _sources(file: Path, name: str) -> tuple[str, str]:
    """Return the code of a recipe and the helper code of its file, both without comments."""
    body = ast.parse(file.read_text()).body
    recipes = [node for node in body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    helpers = [node for node in body if node not in recipes]
    chosen = [node for node in recipes if node.name == name]
    return ast.unparse(ast.Module([*chosen], [])), ast.unparse(ast.Module(helpers, []))


@cache
def _plain(file: Path) -> str:
    """Return the text of a file; Python code without comments and formatting."""
    text = file.read_text()
    return ast.unparse(ast.parse(text)) if file.suffix == ".py" else text


def _add_imported(source: str, files: set[Path]) -> None:
    """Add the files of this package that some code imports, recursively."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("corpus."):
            file = _HERE.joinpath(*str(node.module).split(".")[1:]).with_suffix(".py")
            if file.exists() and file not in files:
                files.add(file)
                _add_imported(file.read_text(), files)
