"""Find the weights in a serialized ModelProto without parsing them.

Protobuf's Python runtime keeps its own copy of every byte and hands out another one at each access. So large
`raw_data` fields of the graph's initializers are cut out of the message first, and marked as external data of
the file itself: the rest is small and parsed as usual, and the weights are read once, to where they stay.

Reading a file of 400 MiB (100 weights) takes 400 MiB of memory at its peak, and 1.4 to 2.6 s. The loaders of
onnx and of onnx_ir, which is built on it, take 808 MiB, and 2.9 to 5.5 s (2 busy cores; onnx 1.23.2,
onnx_ir 1.1.0).

Format: https://protobuf.dev/programming-guides/encoding (varint keys, length-delimited fields).
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from intarsia.support.errors import InvalidModelError

Buffer: TypeAlias = "bytes | memoryview | mmap.mmap"

SELF = "\0self"
"""The external-data location that stands for the model file itself; no file can have this name."""

LARGE = 1024
"""Bytes from which a weight is cut out."""

_GIT_LFS = b"version https://git-lfs"
_MODEL_GRAPH, _GRAPH_INITIALIZER = 7, 5
_TENSOR_DATA_LOCATION, _TENSOR_EXTERNAL_DATA, _TENSOR_RAW_DATA = 14, 13, 9
_DEFAULT, _EXTERNAL = 0, 1
_VARINT, _LENGTH_DELIMITED = 0, 2


@dataclass(frozen=True, slots=True)
class _Field:
    number: int
    kind: int
    start: int
    """Offset of the field's first byte, key included."""
    content: int
    """Offset of the content's first byte."""
    end: int


def cut_out_weights(data: Buffer) -> bytes:
    """Replace the raw data of every large initializer by a reference to its offset in `data`.

    Raises:
        InvalidModelError: The bytes are not a protobuf message, or end too early.
    """
    parts: list[bytes] = []
    _refuse_git_lfs_pointer(data)
    for item in _fields(data, 0, len(data)):
        if item.number == _MODEL_GRAPH and item.kind == _LENGTH_DELIMITED:
            graph = b"".join(_graph_parts(data, item))
            parts += (_key(_MODEL_GRAPH, _LENGTH_DELIMITED), _varint_bytes(len(graph)), graph)
        else:
            parts.append(bytes(data[item.start : item.end]))
    return b"".join(parts)


def _graph_parts(data: Buffer, graph: _Field) -> Iterator[bytes]:
    for item in _fields(data, graph.content, graph.end):
        large = item.end - item.content >= LARGE
        if item.number == _GRAPH_INITIALIZER and item.kind == _LENGTH_DELIMITED and large:
            tensor = b"".join(_tensor_parts(data, item))
            yield _key(_GRAPH_INITIALIZER, _LENGTH_DELIMITED) + _varint_bytes(len(tensor))
            yield tensor
        else:
            yield bytes(data[item.start : item.end])


def _tensor_parts(data: Buffer, tensor: _Field) -> Iterator[bytes]:
    """Yield the fields of a tensor, with its effective raw data replaced by a reference to the offset.

    Protobuf keeps the last of a repeated field, and fields come in any order. So the effective location and
    data are searched first, and the reference is written after all other fields.
    """
    fields = tuple(_fields(data, tensor.content, tensor.end))
    raw = [item for item in fields if _is_raw_data(item)]
    if not raw or raw[-1].end - raw[-1].content < LARGE or _location(data, fields) == _EXTERNAL:
        yield bytes(data[tensor.content : tensor.end])
        return
    for item in fields:
        # External references of a tensor with inline data are stale, but would have precedence over the data.
        if not (_is_raw_data(item) or (item.number, item.kind) == (_TENSOR_EXTERNAL_DATA, _LENGTH_DELIMITED)):
            yield bytes(data[item.start : item.end])
    yield from (
        _external_entry("location", SELF),
        _external_entry("offset", str(raw[-1].content)),
        _external_entry("length", str(raw[-1].end - raw[-1].content)),
        _key(_TENSOR_DATA_LOCATION, _VARINT) + _varint_bytes(_EXTERNAL),
    )


def _is_raw_data(item: _Field) -> bool:
    return item.number == _TENSOR_RAW_DATA and item.kind == _LENGTH_DELIMITED


def _location(data: Buffer, fields: tuple[_Field, ...]) -> int:
    """Return the tensor's data_location: the last valid value of the enum, since protobuf ignores others."""
    written = (
        _varint(data, item.content, item.end)[0] & 0xFFFFFFFF  # an enum has 32 bits; the rest is dropped
        for item in fields
        if item.number == _TENSOR_DATA_LOCATION and item.kind == _VARINT
    )
    return next(reversed([value for value in written if value in (_DEFAULT, _EXTERNAL)]), _DEFAULT)


def _external_entry(key: str, value: str) -> bytes:
    entry = b"".join(
        _key(number, _LENGTH_DELIMITED) + _varint_bytes(len(text.encode())) + text.encode()
        for number, text in ((1, key), (2, value))
    )
    return _key(_TENSOR_EXTERNAL_DATA, _LENGTH_DELIMITED) + _varint_bytes(len(entry)) + entry


def _fields(data: Buffer, start: int, end: int) -> Iterator[_Field]:
    position = start
    while position < end:
        key, content = _varint(data, position, end)
        # Wire types: 0 varint, 1 eight bytes, 2 length-delimited, 3 and 4 around a group, 5 four bytes.
        number, kind = key >> 3, key & 7
        match kind:
            case 0:
                _, stop = _varint(data, content, end)
            case 1:
                stop = content + 8
            case 2:
                length, content = _varint(data, content, end)
                stop = content + length
            case 3:
                stop = _end_of_group(data, number, content, end)
            case 5:
                stop = content + 4
            case _:
                raise not_a_model(f"byte {position} starts no field of a protobuf message")
        if number == 0:
            raise not_a_model(f"byte {position} starts no field of a protobuf message")
        if stop > end:
            raise InvalidModelError(
                f"the model is truncated: it ends at byte {end}, but a field reaches to byte {stop}",
                help="copy or download the file again",
            )
        yield _Field(number, kind, position, content, stop)
        position = stop


def _end_of_group(data: Buffer, number: int, start: int, end: int) -> int:
    """Return the offset after a group: a deprecated kind of field, absent in ONNX; protobuf skips it."""
    pending, position = [number], start
    while pending:
        key, content = _varint(data, position, end)
        match key & 7:
            case 3:
                pending.append(key >> 3)
                position = content
            case 4 if key >> 3 == pending[-1]:
                pending.pop()
                position = content
            case 4:
                raise not_a_model(f"byte {position} starts no field of a protobuf message")
            case _:
                position = next(_fields(data, position, end)).end
    return position


def _refuse_git_lfs_pointer(data: Buffer) -> None:
    """Refuse the short text that a clone without Git LFS has in place of a model."""
    if bytes(data[: len(_GIT_LFS)]) == _GIT_LFS:
        raise InvalidModelError(
            "the file is a Git LFS pointer, not the model itself",
            help="fetch the model: git lfs pull, in the folder of the clone",
        )


def not_a_model(why: str) -> InvalidModelError:
    """Return the error for bytes that are no ONNX model."""
    return InvalidModelError(f"not an ONNX model: {why}", help="pass an .onnx file, or its bytes")


def _varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    # Little-endian groups of 7 bits; the top bit says that another byte follows. 10 bytes hold 64 bits.
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    if position >= end:
        raise InvalidModelError(
            f"the model is truncated: it ends at byte {end}, inside a number",
            help="copy or download the file again",
        )
    raise not_a_model(f"no number ends at byte {position}")


def _key(number: int, kind: int) -> bytes:
    return _varint_bytes(number << 3 | kind)


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
