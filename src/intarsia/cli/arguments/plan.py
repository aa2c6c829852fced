"""Check of the plan file at the start of a command, before any measurement."""

from __future__ import annotations

from pathlib import Path

from intarsia.cli.arguments.output import check_writable, refuse_to_replace
from intarsia.support.errors import OutputError


def check_plan_place(path: Path, model: str, artifact: Path) -> None:
    """Check that a plan can be written.

    Raises:
        OutputError: The path cannot be written, or is a folder, the model, or the artifact's path.
    """
    refuse_to_replace(path, model)
    if path.absolute() == artifact.absolute():
        raise OutputError(f"cannot write the plan {path}: the artifact goes there", help="give another name")
    if path.is_dir():
        raise OutputError(f"cannot write the plan {path}: it is a folder", help="give the name of a file")
    check_writable(path)
