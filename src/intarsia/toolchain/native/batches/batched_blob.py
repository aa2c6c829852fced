"""The bytes of kernels for batches: a line of JSON, then the bytes for each size at a multiple of 64."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.runtime.bounded_json import parse_json
from intarsia.runtime.json_record import Record, as_count, as_list, as_truth
from intarsia.runtime.kernel import Array
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.errors import ArtifactError
from intarsia.toolchain.native.blob import read_blob, write_blob
from intarsia.toolchain.native.region import NativeRegion, RegionPort

_LINE: Final = re.compile(rb'\{"batches":[^\n]{0,4096}\n')
_WHERE: Final = "native kernels of batches"


@dataclass(frozen=True, slots=True, eq=False)
class BatchedRegions:
    """Compiled kernels for batches of a few sizes.

    Attributes:
        carrying: For each parameter whether the batch is its first axis.
        regions: Kernels by size of the batch; 1 is one of them.
    """

    carrying: tuple[bool, ...]
    regions: Mapping[int, NativeRegion]


def is_batched_blob(blob: memoryview) -> bool:
    """Return whether bytes are those of kernels for batches."""
    return _LINE.match(blob) is not None


def write_batched_blob(batched: BatchedRegions) -> bytes:
    """Return the bytes of kernels."""
    parts = {size: write_blob(region) for size, region in batched.regions.items()}
    head = {
        "batches": [[size, len(part)] for size, part in parts.items()],
        "carrying": list(batched.carrying),
    }
    line = json.dumps(head, separators=(",", ":")).encode() + b"\n"
    return b"".join(map(_filled, (line, *parts.values())))


def read_batched_blob(blob: memoryview, weights: Mapping[str, Array]) -> BatchedRegions:
    """Return the kernels whose bytes these are.

    Args:
        blob: Bytes that `write_batched_blob` wrote; they must not change while the kernels are used.
        weights: Weights of the source.

    Raises:
        ArtifactError: They are damaged, of another version, or for another CPU.
    """
    line = _LINE.match(blob)
    if line is None:
        raise ArtifactError(f"damaged {_WHERE}: no line of JSON")
    head = Record(parse_json(line[0], _WHERE), _WHERE)
    pairs = [as_list(item, where) for item, where in head.read_list("batches", lambda *pair: pair)]
    regions = {}
    start = line.end() + -line.end() % ALIGNMENT
    for pair in pairs:
        if len(pair) != 2:
            raise ArtifactError(f"damaged {_WHERE}: {pair!r} is no size with a number of bytes")
        size, length = (as_count(number, _WHERE) for number in pair)
        if start + length > len(blob):
            raise ArtifactError(f"damaged {_WHERE}: they end too early")
        regions[size] = read_blob(blob[start : start + length], weights)
        start += length + -length % ALIGNMENT
    carrying = tuple(head.read_list("carrying", as_truth))
    if 1 not in regions or any(len(region.params) != len(carrying) for region in regions.values()):
        raise ArtifactError(f"damaged {_WHERE}: they do not fit each other")
    for size, region in regions.items():
        _check_sizes(size, region.params, carrying, regions[1].params)
        _check_sizes(size, region.results, (True,) * len(region.results), regions[1].results)
    return BatchedRegions(carrying, regions)


def _check_sizes(
    size: int, ports: Sequence[RegionPort], carrying: Sequence[bool], of_one: Sequence[RegionPort]
) -> None:
    """Refuse regions whose shapes differ by more than the number of items.

    Raises:
        ArtifactError: Some do.
    """
    expected = [
        (item.dtype, (item.shape[0] * size, *item.shape[1:]) if carries and item.shape else item.shape)
        for item, carries in zip(of_one, carrying, strict=False)
    ]
    if [(port.dtype, port.shape) for port in ports] != expected:
        raise ArtifactError(f"damaged {_WHERE}: those for {size} items do not fit those for one")


def _filled(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % ALIGNMENT)
