"""Checks of output files at the start of a command, before any long work."""

from __future__ import annotations

import tempfile
from pathlib import Path

from intarsia.runtime.artifact_format import MANIFEST
from intarsia.runtime.artifact_writer import may_be_artifact
from intarsia.support.errors import OutputError
from intarsia.support.files import output_error


def check_writable(path: Path) -> None:
    """Check that a file can be created beside `path`, before any long work.

    Raises:
        OutputError: The folder is missing or read-only, the disk is full, or a device is in the way.
    """
    if path.name in {"", ".."}:
        raise OutputError(f"cannot write {path}: it is a folder", help="give the name of a new file")
    if path.exists() and not (path.is_file() or path.is_dir()):  # a device must not be replaced by a file
        raise OutputError(
            f"cannot write {path}: it is not a regular file", help="give the name of a new file"
        )
    try:
        with tempfile.TemporaryFile(prefix=f".{path.name}.", dir=path.parent) as probe:
            # One block, because some file systems only report a full disk when data is written.
            probe.write(b"\0" * 4096)
    except OSError as error:
        raise output_error(path, error) from error


def refuse_to_replace(path: Path, given: str) -> None:
    """Refuse an output that is the file that the command reads.

    Raises:
        OutputError: Both are the same file.
    """
    if path.is_file() and Path(given).is_file() and path.samefile(given):
        raise OutputError(f"cannot write {path}: it is the input file", help="give the name of a new file")


def check_artifact_place(path: Path, model: str) -> None:
    """Check that an artifact can be written; it may also be a folder, or replace an artifact.

    Raises:
        OutputError: The path cannot be written, a folder with other files or a file that is not an artifact
            exists there, or it is the model itself.
    """
    refuse_to_replace(path, model)
    if path.is_file() and not may_be_artifact(path):
        raise OutputError(
            f"cannot write {path}: the existing file is not an artifact",
            help="give the name of a new file, or remove this one",
        )
    if path.is_dir() and any(path.iterdir()) and not (path / MANIFEST).is_file():
        raise OutputError(
            f"cannot write {path}: the folder has other files", help="give the name of a new or empty folder"
        )
    check_writable(path)
