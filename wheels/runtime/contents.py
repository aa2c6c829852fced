"""The modules of the wheel intarsia-runtime: what running an artifact imports, followed through the sources.

The same sources make both wheels. A module is in this one if a root imports it, at the top of a file or in a
function, directly or through others; imports for type checkers do not count. The import contract "What
intarsia-runtime contains needs no compiler" in pyproject.toml keeps the compiler out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGE: Final = "intarsia"
ROOTS: Final = ("intarsia.runtime", "intarsia.toolchain.native.loader", "intarsia.toolchain.native.options")
"""What artifacts run with, the loader of native's kernels, and the options that their targets carry."""

# Names of the package itself are lazy, and its imports of the compiler stand behind a check that it is there.
_TOP: Final = "__init__.py"


def source_files(source: Path) -> list[Path]:
    """Return the files of the wheel, sorted.

    Args:
        source: Folder that contains the package `intarsia`.
    """
    modules = _modules(source)
    pending = [name for name in modules if _is_below(name, ROOTS[0]) or name in ROOTS]
    reached: set[str] = set()
    while pending:
        name = pending.pop()
        if name in reached or name == PACKAGE:
            continue
        reached.add(name)
        parent = name.rpartition(".")[0]
        pending += [parent, *(item for item in _imports(modules[name]) if item in modules)]
    top = source / PACKAGE
    return sorted([top / _TOP, top / "py.typed", *(modules[name] for name in reached)])


def _modules(source: Path) -> dict[str, Path]:
    files = {}
    for file in (source / PACKAGE).rglob("*.py"):
        parts = file.relative_to(source).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return files


def _is_below(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _imports(file: Path) -> Iterator[str]:
    """Yield the names that a file imports; a name may be a module or something in one."""
    pending: list[ast.AST] = [ast.parse(file.read_text("utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            pending += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        pending += ast.iter_child_nodes(node)
