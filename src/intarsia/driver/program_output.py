"""A program in a file: a model of ONNX, program text with constants, or a drawing of its graph."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from intarsia.driver.program_file import write_program
from intarsia.frontend.onnx import to_onnx
from intarsia.ir import IRModule
from intarsia.ir.dot import dot_text
from intarsia.support.environment import copy_environment
from intarsia.support.errors import OutputError, UsageError
from intarsia.support.files import write_atomically, write_text

OUTPUT_SUFFIXES: Final = (".onnx", ".txt", ".dot", ".svg")
_GRAPHVIZ: Final = "dot"


def check_output(path: Path) -> None:
    """Check the suffix of an output file before any work.

    Raises:
        UsageError: There is no such format.
        OutputError: Graphviz is missing, which draws.
    """
    if path.suffix not in OUTPUT_SUFFIXES:
        raise UsageError(
            f"cannot write {path}: unknown suffix {path.suffix!r}",
            help=f"the formats are {', '.join(OUTPUT_SUFFIXES)}",
        )
    if path.suffix == ".svg" and shutil.which(_GRAPHVIZ) is None:
        raise OutputError(
            f"cannot write {path}: the program {_GRAPHVIZ!r} of Graphviz is not installed",
            help=f"install Graphviz, or write {path.with_suffix('.dot')}",
        )


def write_output(mod: IRModule, path: Path) -> tuple[Path, ...]:
    """Write a program in the format of the file's suffix, and return the files.

    Raises:
        UsageError, OutputError: As `check_output`; or the file system refuses.
        UnsupportedModelError: The program is none of ONNX.
    """
    check_output(path)
    match path.suffix:
        case ".txt":
            return write_program(mod, path)
        case ".onnx":
            model = to_onnx(mod)
            with write_atomically(path) as temporary:
                temporary.write_bytes(model.SerializeToString())
        case ".dot":
            write_text(path, dot_text(mod))
        case _:
            with write_atomically(path) as temporary:
                _draw(dot_text(mod), temporary)
    return (path,)


def _draw(text: str, path: Path) -> None:
    command = [_GRAPHVIZ, "-Tsvg", "-o", str(path)]
    done = subprocess.run(  # noqa: S603 - a fixed program
        command, input=text, capture_output=True, text=True, check=False, env=copy_environment()
    )
    if done.returncode:
        raise OutputError(f"Graphviz cannot draw the program: {done.stderr.strip()[:200]}")
