"""Compiled regions as bytes: a line of JSON, then object code and constants, each at a multiple of 64.

Weights are not part of it: they stand in the artifact once, and are packed again when a region is loaded.
What was computed of weights (batch normalization folded into them, say) is, in the form that kernels read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from intarsia.native.machine.isa import Isa
from intarsia.runtime.bounded_json import parse_json
from intarsia.runtime.json_record import Record, as_count, as_list, as_shape, as_text, as_truth
from intarsia.support.aligned_memory import ALIGNMENT, aligned_array
from intarsia.support.errors import ArtifactError
from intarsia.support.mapped_file import drop_pages
from intarsia.support.version import VERSION
from intarsia.toolchain.native.counted_result import CountedResult
from intarsia.toolchain.native.index_check import IndexCheck
from intarsia.toolchain.native.record import (
    dtype_of,
    dtype_text,
    packing_of,
    packing_record,
    parameter_of,
    parameter_record,
)
from intarsia.toolchain.native.region import (
    Argument,
    ArgumentKind,
    Array,
    NativeRegion,
    RegionCall,
    RegionConstant,
    RegionKernel,
    RegionPort,
)
from intarsia.toolchain.native.region_check import check_region
from intarsia.toolchain.native.shared_packs import packed_weight

_LINE: Final = re.compile(rb"[^\n]*\n")
_FORMAT: Final = f"intarsia native region 4, version {VERSION}"
_MOST_PADDING: Final = 64
"""How many times as large a packed weight may be as the weight: a tile of 64 of which one lane is used."""
_SMALL: Final = 1 << 20
"""Elements by which small weights may be larger than that."""
# What NumPy and enumerations raise on values of the right kind that do not fit each other.
_DAMAGE: Final = (ValueError, KeyError, TypeError, IndexError, OverflowError, MemoryError)


def write_blob(region: NativeRegion) -> bytes:
    """The bytes of a region; equal regions give equal bytes."""
    return b"".join(blob_parts(region))


def blob_parts(region: NativeRegion) -> list[bytes | memoryview]:
    """Return the bytes of a region in parts, in order; those of constants are not copied."""
    parts = _Parts()
    head = {
        "format": _FORMAT,
        "isa": str(region.isa),
        "driver": parts.add(region.driver),
        "threads": region.threads,
        "kernels": [_kernel_record(kernel, parts) for kernel in region.kernels],
        "calls": [_call_record(call) for call in region.calls],
        "constants": [_constant_record(constant, parts) for constant in region.constants],
        "params": [_port_record(port) for port in region.params],
        "results": [_port_record(port) for port in region.results],
        "copies": [[position, _written(origin)] for position, origin in region.copies],
        "arena_bytes": region.arena_bytes,
        "counted": [[item.position, item.width, item.is_transposed] for item in region.counted],
        "checks": [_check_record(check) for check in region.checks],
    }
    line = json.dumps(head, separators=(",", ":")).encode()
    return [line, b"\n", b"\0" * (-(len(line) + 1) % ALIGNMENT), *parts.content]


def read_blob(blob: bytes | memoryview, weights: Mapping[str, Array]) -> NativeRegion:
    """The region whose bytes these are; constants are views of them, if elements stand at even addresses.

    Args:
        blob: Bytes that `write_blob` wrote; they must not change while the region is used.
        weights: Weights of the source.

    Raises:
        ArtifactError: It is damaged, of another version, lacks a weight, or this CPU lacks an instruction.
    """
    try:
        line = _LINE.match(blob)
        if line is None:
            raise ArtifactError("damaged native kernels: no line of JSON")
        start, head = line.end(), Record(parse_json(line[0], "native kernels"), "native kernels")
        if head.text("format") != _FORMAT:
            raise ArtifactError(f"native kernels of another version: {head.text('format')[:80]!r}")
        isa = Isa.parse(head.text("isa"))
        Isa.host_without_compiler().require(isa)
        body = _Body(memoryview(blob)[start + -start % ALIGNMENT :])
        region = _region(head, isa, body, weights)
    except _DAMAGE as error:
        raise ArtifactError(f"damaged native kernels: {type(error).__name__}: {error}") from error
    check_region(region)
    return region


def _region(head: Record, isa: Isa, body: _Body, weights: Mapping[str, Array]) -> NativeRegion:
    return NativeRegion(
        isa,
        bytes(body.part(head.get("driver"))),
        head.count("threads"),
        head.read_list("kernels", lambda record, _: _kernel(record, body)),
        head.read_list("calls", _call),
        head.read_list("constants", lambda record, where: _constant(Record(record, where), body, weights)),
        head.read_list("params", _port),
        head.read_list("results", _port),
        head.read_list("copies", _copy),
        head.count("arena_bytes"),
        head.read_list("counted", _counted),
        head.read_list("checks", _check),
    )


def _counted(record: object, where: str) -> CountedResult:
    position, width, is_transposed = as_list(record, where)
    return CountedResult(as_count(position, where), as_count(width, where), as_truth(is_transposed, where))


def _check_record(check: IndexCheck) -> list[Any]:
    return [check.smallest, check.largest, check.subject, list(check.limits), check.is_signed]


def _check(record: object, where: str) -> IndexCheck:
    smallest, largest, operator, limits, is_signed = as_list(record, where)
    return IndexCheck(
        as_count(smallest, where),
        as_count(largest, where),
        as_text(operator, where),
        as_shape(limits, where),
        as_truth(is_signed, where),
    )


@dataclass(slots=True)
class _Parts:
    """What stands behind the line of JSON."""

    content: list[bytes | memoryview] = field(default_factory=list)
    end: int = 0

    def add(self, data: bytes | memoryview) -> list[int]:
        """Offset and size of new content, which is not copied."""
        extent = [self.end, len(data)]
        filled = -len(data) % ALIGNMENT
        self.content += [data, b"\0" * filled]
        self.end += len(data) + filled
        return extent


@dataclass(slots=True)
class _Body:
    """What stands behind the line of JSON, and how much of it was read.

    No part is in it twice, so that a small file cannot stand for many copies of its content.
    """

    content: memoryview
    bytes_read: int = 0

    def part(self, where: object) -> memoryview:
        """The part of an offset and a size; ArtifactError if it is not there, or parts overlap."""
        offset, size = (as_count(number, "a part of native kernels") for number in as_list(where, "a part"))
        self.bytes_read += size
        if offset + size > len(self.content) or self.bytes_read > len(self.content):
            raise ArtifactError("damaged native kernels: they end too early")
        return self.content[offset : offset + size]


def _kernel_record(kernel: RegionKernel, parts: _Parts) -> list[Any]:
    parameters = [parameter_record(each) for each in kernel.parameters]
    return [parts.add(kernel.object_code), kernel.symbol, parameters, kernel.scratch_bytes, kernel.library]


def _kernel(record: object, body: _Body) -> RegionKernel:
    where, symbol, parameters, scratch_bytes, library = as_list(record, "a kernel")
    return RegionKernel(
        bytes(body.part(where)),
        as_text(symbol, "a kernel's symbol"),
        tuple(map(parameter_of, as_list(parameters, "a kernel's parameters"))),
        as_count(scratch_bytes, "a kernel's scratch memory"),
        as_text(library, "the library that a kernel calls"),
    )


def _written(argument: Argument) -> list[Any]:
    return [argument.kind.value, argument.number]


def _call_record(call: RegionCall) -> list[Any]:
    arguments = [_written(item) for item in call.arguments]
    names = [call.name, list(call.nodes), call.is_conversion]
    return [call.kernel, arguments, call.group, call.computation, *names]


def _call(record: object, where: str) -> RegionCall:
    kernel, given, group, computation, name, nodes, is_conversion = as_list(record, where)
    return RegionCall(
        as_count(kernel, where),
        tuple(_argument(each) for each in as_list(given, where)),
        as_text(group, where),
        as_text(computation, where),
        as_text(name, where),
        tuple(as_text(node, where) for node in as_list(nodes, where)),
        as_truth(is_conversion, where),
    )


def _copy(record: object, where: str) -> tuple[int, Argument]:
    position, origin = as_list(record, where)
    return as_count(position, where), _argument(origin)


def _argument(record: object) -> Argument:
    place, number = as_list(record, "an argument")
    return Argument(ArgumentKind(as_text(place, "an argument")), as_count(number, "an argument"))


def _constant_record(constant: RegionConstant, parts: _Parts) -> dict[str, Any]:
    array, packing = constant.array, constant.packing
    record: dict[str, Any] = {"shape": list(array.shape), "dtype": dtype_text(array.dtype)}
    if constant.weight is None:
        return record | {"data": parts.add(array.reshape(-1).view(np.uint8).data)}
    record["weight"] = constant.weight
    if packing is not None:
        record["packing"] = packing_record(packing)
    return record


def _constant(record: Record, body: _Body, weights: Mapping[str, Array]) -> RegionConstant:
    shape, dtype = as_shape(record.get("shape"), record.path_to("shape")), dtype_of(record.get("dtype"))
    names = record.keys()
    if "weight" not in names:
        content = body.part(record.get("data"))
        return RegionConstant(aligned_array(np.frombuffer(content, dtype).reshape(shape)))
    weight, packing = record.text("weight"), None
    array = weights[weight].view(dtype)
    if "packing" in names:
        packing = packing_of(record.get("packing"))
        array = array.reshape(packing.shape)
        if math.prod(packing.packed_shape) != math.prod(shape) or math.prod(shape) > _MOST_PADDING * (
            array.size + _SMALL
        ):
            raise ArtifactError(f"damaged native kernels: the packing of {weight!r} does not fit its shape")
        packed = packed_weight(array, packing)
        drop_pages(array)  # of an artifact: kernels read the packed elements
        array = packed
    return RegionConstant(aligned_array(array.reshape(shape)), weight, packing)


def _port_record(port: RegionPort) -> list[Any]:
    return [port.name, list(port.shape), dtype_text(port.dtype)]


def _port(record: object, where: str) -> RegionPort:
    name, shape, dtype = as_list(record, where)
    return RegionPort(as_text(name, where), as_shape(shape, where), dtype_of(dtype))
