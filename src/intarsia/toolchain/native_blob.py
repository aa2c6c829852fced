"""Compiled regions as bytes: a line of JSON, then object code and constants, each at a multiple of 64.

Weights are not part of it: they stand in the artifact once, and are packed again when a region is loaded.
What was computed of weights (batch normalization folded into them, say) is, in the form that kernels read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from intarsia.ir import DType
from intarsia.native.llvm.isa import Isa
from intarsia.support.aligned_memory import ALIGNMENT, aligned_array
from intarsia.support.errors import ArtifactError
from intarsia.support.version import VERSION
from intarsia.toolchain.native_record import (
    dtype_text,
    packing_of,
    packing_record,
    parameter_of,
    parameter_record,
)
from intarsia.toolchain.native_region import (
    Argument,
    Array,
    NativeRegion,
    Place,
    RegionCall,
    RegionConstant,
    RegionKernel,
    RegionPort,
)

_LINE: Final = re.compile(rb"[^\n]*\n")
_FORMAT: Final = f"intarsia native region 1, version {VERSION}"


def write_blob(region: NativeRegion) -> bytes:
    """The bytes of a region; equal regions give equal bytes."""
    parts = _Parts()
    head = {
        "format": _FORMAT,
        "isa": str(region.isa),
        "driver": parts.add(region.driver),
        "threads": region.threads,
        "kernels": [_kernel_record(kernel, parts) for kernel in region.kernels],
        "calls": [[call.kernel, [_written(each) for each in call.arguments]] for call in region.calls],
        "constants": [_constant_record(constant, parts) for constant in region.constants],
        "params": [_port_record(port) for port in region.params],
        "results": [_port_record(port) for port in region.results],
        "copies": [[position, _written(origin)] for position, origin in region.copies],
        "arena_bytes": region.arena_bytes,
    }
    line = json.dumps(head, separators=(",", ":")).encode()
    return b"".join((line, b"\n", b"\0" * (-(len(line) + 1) % ALIGNMENT), *parts.content))


def read_blob(blob: bytes | memoryview, weights: Mapping[str, Array]) -> NativeRegion:
    """The region whose bytes these are; constants are views of them, if elements stand at even addresses.

    Args:
        blob: What `write_blob` made; it must not change while the region is used.
        weights: Of the source.

    Raises:
        ArtifactError: It is damaged, of another version, lacks a weight, or this CPU lacks an instruction.
    """
    try:
        line = _LINE.match(blob)
        if line is None:
            raise ArtifactError("damaged native kernels: no line of JSON")
        start, head = line.end(), json.loads(line[0])
        if head["format"] != _FORMAT:
            raise ArtifactError(f"native kernels of another version: {str(head['format'])[:80]!r}")
        isa = Isa.parse(head["isa"])
        Isa.host_without_compiler().require(isa)
        body = memoryview(blob)[start + -start % ALIGNMENT :]
        return _region(head, isa, body, weights)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ArtifactError(f"damaged native kernels: {type(error).__name__}: {error}") from error


def _region(
    head: Mapping[str, Any], isa: Isa, body: memoryview, weights: Mapping[str, Array]
) -> NativeRegion:
    return NativeRegion(
        isa,
        bytes(_part(body, head["driver"])),
        head["threads"],
        tuple(_kernel(record, body) for record in head["kernels"]),
        tuple(RegionCall(kernel, tuple(map(_argument, given))) for kernel, given in head["calls"]),
        tuple(_constant(record, body, weights) for record in head["constants"]),
        tuple(map(_port, head["params"])),
        tuple(map(_port, head["results"])),
        tuple((position, _argument(origin)) for position, origin in head["copies"]),
        head["arena_bytes"],
    )


@dataclass(slots=True)
class _Parts:
    """What stands behind the line of JSON."""

    content: list[bytes | memoryview] = field(default_factory=list)
    end: int = 0

    def add(self, data: bytes | memoryview) -> list[int]:
        """Offset and size of new content, which is not copied."""
        found = [self.end, len(data)]
        filled = -len(data) % ALIGNMENT
        self.content += [data, b"\0" * filled]
        self.end += len(data) + filled
        return found


def _part(body: memoryview, where: Sequence[int]) -> memoryview:
    offset, size = where
    if offset < 0 or size < 0 or offset + size > len(body):
        raise ArtifactError("damaged native kernels: they end too early")
    return body[offset : offset + size]


def _kernel_record(kernel: RegionKernel, parts: _Parts) -> list[Any]:
    parameters = [parameter_record(each) for each in kernel.parameters]
    return [parts.add(kernel.object_code), kernel.symbol, parameters, kernel.scratch_bytes]


def _kernel(record: Sequence[Any], body: memoryview) -> RegionKernel:
    where, symbol, parameters, scratch_bytes = record
    taken = tuple(map(parameter_of, parameters))
    return RegionKernel(bytes(_part(body, where)), symbol, taken, scratch_bytes)


def _written(argument: Argument) -> list[Any]:
    return [argument.place.value, argument.number]


def _argument(record: Sequence[Any]) -> Argument:
    return Argument(Place(record[0]), record[1])


def _constant_record(constant: RegionConstant, parts: _Parts) -> dict[str, Any]:
    array, packing = constant.array, constant.packing
    record: dict[str, Any] = {"shape": list(array.shape), "dtype": dtype_text(array.dtype)}
    if constant.weight is None:
        return record | {"data": parts.add(array.reshape(-1).view(np.uint8).data)}
    record["weight"] = constant.weight
    if packing is not None:
        record["packing"] = packing_record(packing)
    return record


def _constant(record: Mapping[str, Any], body: memoryview, weights: Mapping[str, Array]) -> RegionConstant:
    shape, dtype = tuple(record["shape"]), DType(record["dtype"]).numpy
    if "weight" not in record:
        content = _part(body, record["data"])
        return RegionConstant(aligned_array(np.frombuffer(content, dtype).reshape(shape)))
    array, packing = weights[record["weight"]].view(dtype), None
    if "packing" in record:
        packing = packing_of(record["packing"])
        array = packing.pack(array.reshape(packing.shape))
    return RegionConstant(aligned_array(array.reshape(shape)), record["weight"], packing)


def _port_record(port: RegionPort) -> list[Any]:
    return [port.name, list(port.shape), dtype_text(port.dtype)]


def _port(record: Sequence[Any]) -> RegionPort:
    name, shape, dtype = record
    return RegionPort(name, tuple(shape), DType(dtype).numpy)
