"""Programs as text in a file, with their constants beside it.

`NAME.txt` is the text; `NAME.constants.safetensors` holds the constants that it refers to as
`meta[Constant][i]`, and `NAME.constants.json` their types. A text without references needs no other file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt

from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.measure.arrays.array_files import read_arrays, write_arrays
from intarsia.passes import InferType
from intarsia.support.errors import UsageError
from intarsia.support.files import output_error, write_text


def write_program(mod: IRModule, path: Path) -> tuple[Path, ...]:
    """Write a program, and return the files: the text, and those of its constants if it has some.

    Raises:
        OutputError: The file system refuses.
    """
    printed = print_module(mod)
    write_text(path, printed.text)
    if not printed.constants:
        return (path,)
    try:
        constants = {str(number): array for number, array in enumerate(printed.constants)}
        write_arrays(path.parent, _constants_name(path), constants)
    except OSError as error:
        raise output_error(path.parent, error) from error
    name = _constants_name(path)
    return (path, path.with_name(f"{name}.safetensors"), path.with_name(f"{name}.json"))


def read_program(path: Path) -> IRModule:
    """Read a program that `write_program` wrote, or that was written by hand, and infer its types.

    Raises:
        UsageError: A file is missing, or is damaged.
        ProgramTextError: The text does not parse; the message shows where.
        InvalidModelError: Types do not fit.
    """
    try:
        text = path.read_text(encoding="utf-8")
        constants = _read_constants(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read {path}: {reason.lower()}") from error
    return InferType()(parse_module(text, constants))


def _read_constants(path: Path) -> tuple[npt.NDArray[Any], ...]:
    name = _constants_name(path)
    if not path.with_name(f"{name}.json").exists():
        return ()
    arrays = read_arrays(path.parent, name)
    return tuple(arrays[str(number)] for number in range(len(arrays)))


def _constants_name(path: Path) -> str:
    """Return the name of the two files of constants, without suffix."""
    return f"{path.stem}.constants"
