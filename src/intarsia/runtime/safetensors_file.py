"""Write tensors to safetensors files in pieces, and read them without a copy.

Layout: 8 bytes length of the header (little endian), the header (JSON: name -> dtype, shape, data_offsets),
then the bytes of all tensors without gaps. Element types that the format lacks (4 bits, some of 8
bits, complex, text) are stored as bytes, U8; their real type is in a `StoredTensor`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from intarsia.ir.dtype import DType
from intarsia.runtime.bounded_json import parse_json
from intarsia.runtime.kernel import Array
from intarsia.support.errors import ArtifactError
from intarsia.support.json_text import parse_json_text

_FORMAT_NAMES: Final = {
    DType.FLOAT64: "F64", DType.FLOAT32: "F32", DType.FLOAT16: "F16", DType.BFLOAT16: "BF16",
    DType.FLOAT8_E4M3FN: "F8_E4M3", DType.FLOAT8_E5M2: "F8_E5M2",
    DType.INT64: "I64", DType.INT32: "I32", DType.INT16: "I16", DType.INT8: "I8",
    DType.UINT64: "U64", DType.UINT32: "U32", DType.UINT16: "U16", DType.UINT8: "U8", DType.BOOL: "BOOL",
}  # fmt: skip
_PIECE: Final = 1 << 24
"""Bytes that are written at a time."""
_ALIGNMENT: Final = 64
"""Alignment of the data in bytes: a cache line of x86 and most ARM CPUs, and the width of AVX-512."""
_LENGTH_BYTES: Final = 8
"""Size in bytes of the header's length, which begins the file."""


class Sink(Protocol):
    """A destination of bytes."""

    def write(self, data: bytes | memoryview, /) -> object:
        """Write the bytes."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of a file: its name there, and its real element type and shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def stored(name: str, array: Array) -> StoredTensor:
    """Return the entry of an array in the manifest."""
    return StoredTensor(name, DType.of(array).value, array.shape)


def write_tensors(sink: Sink, arrays: Mapping[str, Array]) -> None:
    """Write a file; only arrays that are not contiguous are copied, one at a time."""
    texts = {name: _text_bytes(arrays[name]) for name in arrays if _is_text(arrays[name])}
    sizes = {name: len(texts[name]) if name in texts else array.nbytes for name, array in arrays.items()}
    # Whole cache lines first, so that all of these are aligned: the format allows no gaps.
    order = sorted(arrays, key=lambda name: (sizes[name] % _ALIGNMENT != 0, -_alignment(arrays[name])))
    header: dict[str, object] = {}
    position = 0
    for name in order:
        size = sizes[name]
        header[name] = _entry(arrays[name], position, size)
        position += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + _LENGTH_BYTES) % _ALIGNMENT)
    sink.write(len(text).to_bytes(_LENGTH_BYTES, "little"))
    sink.write(text)
    for name in order:
        if name in texts:
            sink.write(texts[name])
        else:
            for piece in _pieces(arrays[name]):
                sink.write(piece)


def read_tensors(data: Array, tensors: Mapping[str, StoredTensor], where: str) -> dict[str, Array]:
    """Read the listed tensors of a file, as views of its bytes where the element type allows it.

    Args:
        data: All bytes of the file.
        tensors: Tensors to read, by any key.
        where: Name of the file, for errors.

    Raises:
        ArtifactError: The file is damaged, or is not what the list says.
    """
    header, start = _header(data, where)
    _refuse_overlap(header, tensors, data.size - start, where)
    return {
        key: _tensor(data, start, header.get(tensor.name), tensor, where) for key, tensor in tensors.items()
    }


def _alignment(array: Array) -> int:
    return 1 if _is_text(array) else array.dtype.itemsize


def _is_text(array: Array) -> bool:
    return DType.of(array) is DType.STRING


def _text_bytes(array: Array) -> bytes:
    items = [
        item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)
        for item in array.flat
    ]
    return json.dumps(items).encode()


def _entry(array: Array, position: int, size: int) -> dict[str, object]:
    format_name = _FORMAT_NAMES.get(DType.of(array))
    shape = list(array.shape) if format_name else [size]
    return {"dtype": format_name or "U8", "shape": shape, "data_offsets": [position, position + size]}


def _pieces(array: Array) -> Iterator[memoryview]:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, flat.size, _PIECE):
        yield flat[start : start + _PIECE].data


def _header(data: Array, where: str) -> tuple[dict[str, object], int]:
    length = int.from_bytes(data[:_LENGTH_BYTES].tobytes(), "little")
    start = _LENGTH_BYTES + length
    if data.size < start or data.size < _LENGTH_BYTES:
        raise ArtifactError(f"{where} is damaged: its header is cut off")
    header = parse_json(data[_LENGTH_BYTES:start].tobytes(), f"{where} is damaged: its header")
    if not isinstance(header, dict):
        raise ArtifactError(f"{where} is damaged: its header is not an object")
    return header, start


def _refuse_overlap(
    header: Mapping[str, object], tensors: Mapping[str, StoredTensor], size: int, where: str
) -> None:
    """Refuse tensors that share bytes: a small file could stand for many copies of them."""
    total = 0
    for name in {tensor.name for tensor in tensors.values()}:
        match header.get(name):
            case {"data_offsets": [int(begin), int(end)]} if 0 <= begin <= end <= size:
                total += end - begin
    if total > size or len({tensor.name for tensor in tensors.values()}) < len(tensors):
        raise ArtifactError(f"{where} is damaged: tensors in it overlap")


def _tensor(data: Array, start: int, entry: object, tensor: StoredTensor, where: str) -> Array:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    match offsets:
        case [int(begin), int(end)] if 0 <= begin <= end <= data.size - start:
            raw = data[start + begin : start + end]
        case _:
            raise ArtifactError(f'{where} has no tensor "{tensor.name}"')
    if tensor.dtype == DType.STRING:
        return _text_array(raw, tensor, where)
    dtype = DType(tensor.dtype).numpy
    if raw.size != math.prod(tensor.shape) * dtype.itemsize:
        raise ArtifactError(
            f'tensor "{tensor.name}" of {where} has {raw.size} bytes, '
            f"expected {math.prod(tensor.shape) * dtype.itemsize}"
        )
    try:
        array = raw.view(dtype).reshape(tensor.shape)
    except ValueError as error:  # no elements, and extents that NumPy cannot count
        raise ArtifactError(f'tensor "{tensor.name}" of {where} has the shape {tensor.shape}') from error
    return array if array.flags.aligned else array.copy()


def _text_array(raw: Array, tensor: StoredTensor, where: str) -> Array:
    try:
        items = parse_json_text(raw.tobytes())
    except ValueError as error:
        raise ArtifactError(f'tensor "{tensor.name}" of {where} is not a list of texts') from error
    if (
        not isinstance(items, list)
        or len(items) != math.prod(tensor.shape)
        or not all(isinstance(item, str) for item in items)
    ):
        raise ArtifactError(f'tensor "{tensor.name}" of {where} is not {math.prod(tensor.shape)} texts')
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(tensor.shape)
