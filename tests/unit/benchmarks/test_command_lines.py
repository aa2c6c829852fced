"""Every benchmark parses its command line, so that `--help` shows what it does, and is called in one way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOREIGN = {"tvm_search"}
"""Programs that another environment, without this project, runs by their path."""
PROGRAMS = [
    path
    for path in sorted((ROOT / "benchmarks").glob("*.py"))
    if "__main__" in path.read_text("utf-8") and path.stem not in FOREIGN
]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_benchmark_parses_its_command_line(path: Path) -> None:
    source = path.read_text("utf-8")
    assert "ArgumentParser(" in source
    assert f"python -m benchmarks.{path.stem}" in source


@pytest.mark.parametrize("path", [*PROGRAMS, *PAGES], ids=lambda path: path.stem)
def test_benchmarks_are_called_as_modules(path: Path) -> None:
    assert not re.findall(r"python3? benchmarks/\S*", path.read_text("utf-8"))
