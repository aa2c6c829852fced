"""Measured machine models on disk: a file for each machine in the user's data folder.

The folder may be shared by several machines, so the name of a file is a digest of what identifies one. What
is not measured comes from the family of the CPU.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

from intarsia.support.digest import digest_text
from intarsia.support.errors import OutputError
from intarsia.support.files import output_error, write_text
from intarsia.support.json_text import parse_json_text
from intarsia.support.user_folders import data_folder
from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.cpu import cache_line_bytes, cpu_model, first_cache_ways, read_cpuinfo
from intarsia.target.machine_families import family_model, machine_family
from intarsia.target.machine_model import MachineModel

VERSION: Final = 1
"""Version of the file, and of the procedure that measures: files of another version are not read."""
MEASURED: Final = (
    "fma_latency",
    "fma_pipes",
    "fma_bytes",
    "first_bandwidth",
    "second_bandwidth",
    "third_bandwidth",
    "busy_third_bandwidth",
    "memory_bandwidth",
    "busy_memory_bandwidth",
    "huge_page_speedup",
    "barrier_cycles",
)
"""Names of the values that are measured; the others are read from the system's files."""
_DIGITS: Final = 16
_ROOT: Final = Path("/")
_NOWHERE: Final = Path("machine model.json")
"""Path of the file of a user without a home, which does not exist."""


@dataclass(frozen=True, slots=True)
class MachineFile:
    """The model of a machine, and where it comes from.

    Attributes:
        model: The model in use.
        path: File of the measured values.
        measured: Names of the values that the file contains; none if nothing was measured.
        problem: Why the file is not used; "" if it is, or if there is none.
    """

    model: MachineModel
    path: Path
    measured: tuple[str, ...] = ()
    problem: str = ""


def default_machine_model(root: Path = _ROOT) -> MachineModel:
    """Return the model of a machine by its family and the system's files, without measured values.

    Args:
        root: Folder with `proc` and `sys`.
    """
    model = family_model(machine_family(read_cpuinfo(root)))
    return replace(
        model,
        caches=CacheSizes.host(root),
        first_ways=first_cache_ways(root) or model.first_ways,
        line_bytes=cache_line_bytes(root) or model.line_bytes,
        page_bytes=os.sysconf("SC_PAGE_SIZE") if root == _ROOT else model.page_bytes,
    )


def machine_model(root: Path = _ROOT) -> MachineModel:
    """Return the model of a machine: measured values, else the defaults of its family.

    Args:
        root: Folder with `proc` and `sys`.
    """
    return machine_file(root).model


def machine_file(root: Path = _ROOT, folder: Path | None = None) -> MachineFile:
    """Return the model of a machine with its source. A file is read once in a process.

    Args:
        root: Folder with `proc` and `sys`.
        folder: Folder of the files; that of the user's data if not given.
    """
    try:
        return _machine_file(root, folder or data_folder(os.environ) / "machines")
    except RuntimeError:  # a container may run as a user that has no home
        return MachineFile(default_machine_model(root), _NOWHERE)


@functools.cache
def _machine_file(root: Path, folder: Path) -> MachineFile:
    default = default_machine_model(root)
    path = folder / f"{_identity(root, default)}.json"
    try:
        record = parse_json_text(path.read_text("utf-8"))
        return MachineFile(_with_record(default, record), path, tuple(record["measured"]))
    except FileNotFoundError:
        return MachineFile(default, path)
    except OSError as error:
        return MachineFile(default, path, problem=f"cannot be read: {(error.strerror or str(error)).lower()}")
    except (ValueError, TypeError, KeyError, AttributeError):
        return MachineFile(default, path, problem="is damaged or of another version")


def require_writable(root: Path = _ROOT, folder: Path | None = None) -> Path:
    """Return the path of the file of a machine whose folder exists and can be written to.

    Raises:
        OutputError: The folder cannot be created, or no file can be written there.
    """
    path = machine_file(root, folder).path
    if path == _NOWHERE:
        raise OutputError(
            "cannot store the machine model: this user has no home folder",
            help="set XDG_DATA_HOME to a folder that you may write to",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise output_error(path.parent, error) from error
    return path


def write_machine_model(model: MachineModel, root: Path = _ROOT, folder: Path | None = None) -> MachineFile:
    """Store the measured values of a model; later processes, and this one, use them.

    The file is replaced in one step: if that fails, or is interrupted, the old one stays.

    Args:
        model: Model with measured values.
        root: Folder with `proc` and `sys` of the machine.
        folder: Folder of the files; that of the user's data if not given.

    Raises:
        OutputError: The folder or the file cannot be written.
    """
    path = require_writable(root, folder)
    measured = {name: getattr(model, name) for name in MEASURED}
    record = {"version": VERSION, "cpu": cpu_model(read_cpuinfo(root)), "measured": measured}
    write_text(path, json.dumps(record, indent=2) + "\n")
    _machine_file.cache_clear()
    return machine_file(root, folder)


def _identity(root: Path, default: MachineModel) -> str:
    """Return a digest of what a machine is before anything is measured."""
    return digest_text([platform.machine(), cpu_model(read_cpuinfo(root)), str(default.caches)])[:_DIGITS]


def _with_record(default: MachineModel, record: Mapping[str, object]) -> MachineModel:
    """Return a model with the measured values of a record.

    Raises:
        ValueError: The record is of another version, or a value is none of a machine.
        TypeError: A value is no number.
    """
    measured = record["measured"]
    if record["version"] != VERSION or not isinstance(measured, dict) or not measured.keys() <= {*MEASURED}:
        raise ValueError
    kinds = {field.name: field.type for field in fields(default)}
    for name, value in measured.items():
        if type(value) is not int and (kinds[name] == "int" or type(value) is not float):
            raise TypeError
    return replace(default, **measured)
