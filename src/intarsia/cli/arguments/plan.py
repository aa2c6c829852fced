"""The file of a plan: what is wrong with its place is told before anything is measured."""

from __future__ import annotations

from pathlib import Path

from intarsia.cli.arguments.output import check_writable, refuse_to_replace
from intarsia.support.errors import OutputError


def check_plan_place(path: Path, model: str, artifact: Path) -> None:
    """As `output_argument.check_writable`, for a plan.

    Raises:
        OutputError: As there, or it is a folder, the model, or where the artifact is to be written.
    """
    refuse_to_replace(path, model)
    if path.absolute() == artifact.absolute():
        raise OutputError(f"cannot write the plan {path}: the artifact goes there", help="give another name")
    if path.is_dir():
        raise OutputError(f"cannot write the plan {path}: it is a folder", help="give the name of a file")
    check_writable(path)
