"""The layers of DESIGN section 3 hold, and every package of the source stands in one."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_import_contracts_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_package_stands_in_a_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = {name for layer in contracts[0]["layers"] for name in layer.split(" | ")}
    source = ROOT / "src" / "intarsia"
    packages = {path.name for path in source.iterdir() if (path / "__init__.py").exists()}
    modules = {path.stem for path in source.glob("*.py")} - {"__init__", "__main__"}
    assert packages | modules == layers


def test_source_files_hold_one_idea() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in (ROOT / "src").rglob("*.py")}
    assert {str(path): length for path, length in lengths.items() if length > 400} == {}
