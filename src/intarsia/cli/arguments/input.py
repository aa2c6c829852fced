"""Input arrays as people give them: FILE.npz by name, name=FILE.npy, FILE.npy for the only input."""

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
    """The arrays that the files hold, by input name.

    Args:
        texts: As the user wrote them.
        infos: The program's inputs; only names and element types are used, shapes are checked by the call.

    Raises:
        InputError: No such file, no array in it, or an array for an unknown input or twice for one.
    """
    known = {info.name: info for info in infos}
    found: dict[str, Array] = {}
    for text in texts:
        for name, array in _arrays(text, infos).items():
            if name not in known:
                listed = ", ".join(known) or "none"
                raise InputError(f'there is no input "{name}" (--input {text})', help=f"the inputs: {listed}")
            if name in found:
                raise InputError(f'input "{name}" is given twice (--input {text})')
            found[name] = _typed(array, known[name])
    return found


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
            f"{path} holds one array, but not for which of {len(infos)} inputs: {listed}", help=_HOW
        )
    return {infos[0].name: content}


def _split(text: str) -> tuple[str, Path]:
    """Name, if there is one, and file; a file whose name holds "=" is taken as it is."""
    name, equals, file = text.rpartition("=")
    if not equals or Path(text).exists():
        return "", Path(text)
    return name.strip(), Path(file)


def _load(path: Path) -> Array | dict[str, Array]:
    try:
        with path.open("rb") as file:
            start = file.read(len(_NPY_MAGIC))
        if not start.startswith((_NPY_MAGIC, _NPZ_MAGIC)):
            raise InputError(f"cannot read the input file {path}: it is no .npy or .npz file", help=_HOW)
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


def _typed(array: Array, info: TensorInfo) -> Array:
    """Element types that .npy files do not know (bfloat16, float8) come back as raw bytes."""
    if array.dtype.kind != "V" or info.dtype not in {dtype.value for dtype in DType}:
        return array
    wanted = DType(info.dtype).numpy
    return array.view(wanted) if wanted.itemsize == array.dtype.itemsize else array
