"""Input arrays in files: FILE.npz by name, name=FILE.npy, or FILE.npy for the only input."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir.dtype import DType
from intarsia.runtime.plan import TensorInfo
from intarsia.support.errors import InputError

Array = npt.NDArray[Any]

_HOW: Final = "write --input FILE.npz, --input name=FILE.npy, or --input FILE.npy for a model with one input"
_NPZ_MAGIC: Final = b"PK\x03\x04"
_NPY_MAGIC: Final = b"\x93NUMPY"


def read_inputs(texts: Iterable[str], infos: Sequence[TensorInfo]) -> dict[str, Array]:
    """Read the arrays of input files, by input name.

    Args:
        texts: Values of --input.
        infos: Inputs of the program; only names and element types are used, shapes are checked by the call.

    Raises:
        InputError: A file is missing or without arrays, or an input is unknown or given twice.
    """
    by_name = {info.name: info for info in infos}
    arrays: dict[str, Array] = {}
    for text in texts:
        for name, array in _arrays(text, infos).items():
            if name not in by_name:
                listed = ", ".join(by_name) or "none"
                raise InputError(f'there is no input "{name}" (--input {text})', help=f"the inputs: {listed}")
            if name in arrays:
                raise InputError(f'input "{name}" is given twice (--input {text})')
            arrays[name] = _restore_type(array, by_name[name])
    return arrays


def _arrays(text: str, infos: Sequence[TensorInfo]) -> dict[str, Array]:
    name, path = _split(text)
    content = _load(path)
    if isinstance(content, dict):
        if name:
            raise InputError(f'{path} holds arrays by name, expected one array for input "{name}"', help=_HOW)
        return content
    if name:
        return {name: content}
    if len(infos) != 1:
        listed = ", ".join(info.name for info in infos) or "none"
        raise InputError(
            f"{path} holds one array, but the model has {len(infos)} inputs: {listed}", help=_HOW
        )
    return {infos[0].name: content}


def _split(text: str) -> tuple[str, Path]:
    """Split "name=file"; an existing file with "=" in its name is taken as it is."""
    name, equals, file = text.rpartition("=")
    if not equals or Path(text).exists():
        return "", Path(text)
    return name.strip(), Path(file)


def _load(path: Path) -> Array | dict[str, Array]:
    try:
        with path.open("rb") as file:
            start = file.read(len(_NPY_MAGIC))
        if not start.startswith((_NPY_MAGIC, _NPZ_MAGIC)):
            raise InputError(f"cannot read the input file {path}: it is not a .npy or .npz file", help=_HOW)
        loaded = np.load(path, allow_pickle=False)
        if start == _NPY_MAGIC:
            return np.asarray(loaded)
        return {name: np.asarray(loaded[name]) for name in loaded.files}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot read the input file {path}: {reason}", help=_HOW) from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        has_objects = "allow_pickle" in str(error)
        what = "it holds Python objects, which are not read" if has_objects else "it is damaged"
        raise InputError(f"cannot read the input file {path}: {what}", help=_HOW) from error


def _restore_type(array: Array, info: TensorInfo) -> Array:
    """Return an array with its element type restored: .npy files store bfloat16 and float8 as raw bytes."""
    if array.dtype.kind != "V" or info.dtype not in {dtype.value for dtype in DType}:
        return array
    expected = DType(info.dtype).numpy
    return array.view(expected) if expected.itemsize == array.dtype.itemsize else array
