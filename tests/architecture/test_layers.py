"""The layers of DESIGN section 3 hold, and every package of the source stands in one."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]

RECURSIVE_TYPES = (
    # A call has attributes, and an attribute may be a constant.
    {"intarsia.ir.attributes", "intarsia.ir.expr"},
    # An expression reads tensors, and an element of a tensor is an expression, as are axes and combiners.
    {f"intarsia.native.te.{name}" for name in ("combiner", "expression", "iter_var", "tensor")},
    # A block calls for other blocks of its program.
    {"intarsia.build.lowering", "intarsia.build.program"},
)
"""Files that may import each other, if only for annotations, because what they define is recursive."""


@pytest.mark.slow
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


def test_only_recursive_types_import_each_other() -> None:
    """Imports for annotations count here, unlike in the contract of the linter."""
    graph = grimp.build_graph("intarsia", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    for group in RECURSIVE_TYPES:
        imports |= {module: imports[module] - group for module in group}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the files of a circle
