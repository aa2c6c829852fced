"""Weights in other files, or in the model file itself where `wire` cut them out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from intarsia.frontend.onnx.wire import SELF
from intarsia.ir import DType
from intarsia.op.onnx_types import dtype_of_elem, tensor_from_proto
from intarsia.support.errors import InvalidModelError

if TYPE_CHECKING:
    from onnx import TensorProto

ALIGNMENT = 64
"""Bytes; weights start at multiples of it, so that every toolchain can use them in place."""


@dataclass(frozen=True, slots=True)
class WeightSource:
    """The files or bytes with a model's weights.

    Attributes:
        folder: Folder of the model; external data may not leave it. None for a model given as bytes.
        model: The model itself: its path, or its bytes; only a `bytes` object's memory is shared.
    """

    folder: Path | None
    model: Path | memoryview

    def read(self, tensor: TensorProto) -> npt.NDArray[Any]:
        """The array of a tensor, inline or external; read once, to aligned memory.

        Raises:
            InvalidModelError: The data is missing, too short, or outside the model's folder.
        """
        if tensor.data_location != tensor.EXTERNAL:
            return tensor_from_proto(tensor)
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        file = self.model if location == SELF else self._file(tensor.name, location)
        offset = _number(entries.get("offset") or "0", "offset", tensor.name)
        length = entries.get("length")
        raw = _read(file, offset, _number(length, "length", tensor.name) if length else None, tensor.name)
        return _as_array(tensor, raw)

    def _file(self, name: str, location: str) -> Path:
        if self.folder is None:
            raise InvalidModelError(
                f"weight {name!r} is stored in the file {location!r}, but the model was not given as a file",
                help="pass the path of the model instead, with its data files beside it",
            )
        path = self.folder / location
        if not self._may_read(location):
            raise InvalidModelError(
                f"weight {name!r} refers to {location!r}, which is outside the model's folder; refused",
                help="a model may only read files beside it: re-export it with relative paths",
            )
        if not path.is_file():
            raise InvalidModelError(
                f"weight {name!r} is stored in {location!r}, which does not exist beside the model",
                help=f"put the file at {path}",
            )
        return path

    def _may_read(self, location: str) -> bool:
        """Whether a location stays in the model's folder, symbolic links followed."""
        assert self.folder is not None
        if not location or "\0" in location or Path(location).is_absolute():
            return False
        return (self.folder / location).resolve().is_relative_to(self.folder.resolve())


def _number(text: str, what: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise InvalidModelError(f"weight {name!r} has the {what} {text!r}, expected a number of bytes")
    return int(text)


def _read(file: Path | memoryview, offset: int, length: int | None, name: str) -> npt.NDArray[np.uint8]:
    size = file.stat().st_size if isinstance(file, Path) else len(file)
    length = max(0, size - offset) if length is None else length
    if offset + length > size:
        shown = file.name if isinstance(file, Path) else "the model"
        raise InvalidModelError(
            f"weight {name!r} needs bytes {offset} to {offset + length} of {shown}, which has {size}",
            help="copy or download the file again",
        )
    if isinstance(file, memoryview):
        view = np.frombuffer(file, np.uint8, length, offset)
        can_stay = isinstance(file.obj, bytes) and view.ctypes.data % ALIGNMENT == 0
        return view if can_stay else _aligned_copy(view)  # other buffers are the caller's, to write to
    target = _aligned_empty(length)
    with file.open("rb", buffering=0) as stream:
        stream.seek(offset)
        done = 0
        while done < length:
            count = stream.readinto(target[done:].data)
            if not count:
                raise InvalidModelError(f"weight {name!r}: the file became shorter while it was read")
            done += count
    return target


def _aligned_empty(length: int) -> npt.NDArray[np.uint8]:
    whole = np.empty(length + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + length]


def _aligned_copy(view: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    target = _aligned_empty(view.size)
    target[:] = view
    return target


def _as_array(tensor: TensorProto, raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    dtype, shape = dtype_of_elem(tensor.data_type), tuple(tensor.dims)
    count = math.prod(shape)
    is_packed = dtype.value.endswith(("int4", "int2", "float4_e2m1fn"))
    if min(shape, default=0) >= 0 and dtype is not DType.STRING:
        if is_packed:
            packed = type(tensor)(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
            packed.raw_data = raw.tobytes()
            return tensor_from_proto(packed)
        if raw.size == count * dtype.numpy.itemsize:
            return raw.view(dtype.numpy).reshape(shape)
    raise InvalidModelError(
        f"weight {tensor.name!r} has {raw.size} bytes of data, which are no {dtype} array of shape {shape}"
    )
