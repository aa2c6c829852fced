"""Calibration inputs in files: FILE.npz, or a folder of .npz and .npy files.

An array of a .npz file has the name of an input. It has the shape of the input, or one axis more in front,
which counts input sets, or a first axis that is a multiple of the input's, which is cut into input sets. An
array named `labels` holds the right class of each example. A .npy file is for a model with one input.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from intarsia.ir import Function, TensorType, Var
from intarsia.support.errors import InputError

Array = npt.NDArray[Any]

LABELS: Final = "labels"
"""Name of the array with the right classes."""

_HOW: Final = (
    "give FILE.npz with an array for each input, with one axis more in front, which counts the examples"
)


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationInputs:
    """Input sets of a user.

    Attributes:
        inputs: Arrays by parameter name, for each set.
        labels: Right classes of the examples of each set, of integers; () without labels.
        source: Origin of the arrays, for messages.
    """

    inputs: tuple[Mapping[str, Array], ...]
    labels: tuple[Array, ...] = ()
    source: str = ""

    def split(self) -> tuple[Self, Self]:
        """Return the sets to calibrate on, and those held back: every second one if there are several."""
        if len(self.inputs) < 2:
            return self, self
        first, second = (
            type(self)(self.inputs[start::2], self.labels[start::2], self.source) for start in (0, 1)
        )
        return first, second


def read_calibration(path: Path, main: Function) -> CalibrationInputs:
    """Read the calibration inputs of a program.

    Args:
        path: File or folder.
        main: Main function of the program.

    Raises:
        InputError: A file cannot be read, an input is missing, or a shape does not fit.
    """
    files = _files(path)
    sets: list[Mapping[str, Array]] = []
    labels: list[Array] = []
    for file in files:
        arrays = _load(file, main)
        read = calibration_of(arrays, main, str(file))
        sets += read.inputs
        labels += read.labels
    if labels and len(labels) != len(sets):
        raise InputError(f"some calibration inputs of {path} have labels, others do not", help=_HOW)
    return CalibrationInputs(tuple(sets), tuple(labels), str(path))


def calibration_of(
    arrays: Mapping[str, Array], main: Function, source: str = "the arrays"
) -> CalibrationInputs:
    """Return the input sets that arrays hold together.

    Args:
        arrays: Arrays by input name, and `labels`.
        main: Main function of the program.
        source: Origin of the arrays, for messages.

    Raises:
        InputError: An input is missing or unknown, or a shape does not fit.
    """
    names = [param.name for param in main.params]
    unknown = [name for name in arrays if name not in names and name != LABELS]
    missing = [name for name in names if name not in arrays]
    if unknown or missing:
        what = f'there is no input "{unknown[0]}"' if unknown else f'input "{missing[0]}" is missing'
        raise InputError(f"{what} ({source})", help=f"the inputs: {', '.join(names) or 'none'}")
    parts = {param.name: _cut(arrays[param.name], param, source) for param in main.params}
    counts = {len(part) for part in parts.values()}
    if len(counts) != 1:
        listed = ", ".join(f"{name} {len(part)}" for name, part in parts.items())
        raise InputError(f"{source} holds different numbers of examples: {listed}", help=_HOW)
    (count,) = counts
    sets = tuple(
        MappingProxyType({name: part[number] for name, part in parts.items()}) for number in range(count)
    )
    labels = arrays.get(LABELS)
    if labels is None:
        return CalibrationInputs(sets, (), source)
    if labels.dtype.kind not in "iu" or labels.size % count:
        raise InputError(
            f"{source} has labels of {labels.dtype} with {labels.size} elements, "
            f"expected integers for {count} input sets"
        )
    return CalibrationInputs(sets, tuple(labels.reshape(count, -1)), source)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(item for item in path.iterdir() if item.suffix in (".npz", ".npy"))
        if not files:
            raise InputError(f"the calibration folder {path} holds no .npz or .npy file", help=_HOW)
        return files
    return [path]


def _load(path: Path, main: Function) -> dict[str, Array]:
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            if len(main.params) != 1:
                raise InputError(
                    f"{path} holds one array, but the model has {len(main.params)} inputs", help=_HOW
                )
            return {main.params[0].name: loaded}
        with loaded:
            return {name: np.asarray(loaded[name]) for name in loaded.files}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot read the calibration file {path}: {reason}", help=_HOW) from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"cannot read the calibration file {path}: it is damaged", help=_HOW) from error


def _cut(array: Array, param: Var, source: str) -> Sequence[Array]:
    """Return the arrays of the input sets, of the type of the input."""
    own_type = param.checked_type
    if not isinstance(own_type, TensorType) or own_type.shape is None:
        return [array]
    shape = tuple(dim if isinstance(dim, int) else None for dim in own_type.shape)
    cast = array.astype(own_type.dtype.numpy) if array.dtype.kind in "fiub" else array
    if _fits(cast.shape, shape):
        return [np.ascontiguousarray(cast)]
    if _fits(cast.shape[1:], shape):
        return [np.ascontiguousarray(item) for item in cast]
    size = shape[0] if shape else None
    if shape and size and _fits(cast.shape[1:], shape[1:]) and len(cast) % size == 0:
        return [np.ascontiguousarray(item) for item in np.split(cast, len(cast) // size)]
    raise InputError(
        f'input "{param.name}" of {source} has the shape {array.shape}, expected {own_type}', help=_HOW
    )


def _fits(shape: Sequence[int], expected: Sequence[int | None]) -> bool:
    return len(shape) == len(expected) and all(
        wanted is None or size == wanted for size, wanted in zip(shape, expected, strict=True)
    )


def random_calibration(sets: Iterator[Mapping[str, Array]]) -> CalibrationInputs:
    """Return random input sets as calibration inputs."""
    return CalibrationInputs(tuple(sets), (), "random inputs")
