"""Every process that the package starts gets an environment of its own (`support.environment`)."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "intarsia"
STARTING = ("Popen", "run", "check_output", "check_call", "call")


def test_processes_get_a_copy_of_the_environment() -> None:
    calls = [
        (path.relative_to(SOURCE), node)
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "subprocess"
        and node.func.attr in STARTING
    ]
    assert calls
    without = [f"{path}:{node.lineno}" for path, node in calls if "env" not in {k.arg for k in node.keywords}]
    assert not without
