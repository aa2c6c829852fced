"""Regions whose kernels run any number of items, which is a number that they read.

A value for n items is n values for one, one behind another. So the memory of n items is that of one, with all
offsets and sizes n times as large: nothing is planned for a number of items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from intarsia.runtime.bounded_json import parse_json
from intarsia.runtime.json_record import Record, as_truth
from intarsia.runtime.kernel import Array
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.errors import ArtifactError
from intarsia.toolchain.native.blob import read_blob, write_blob
from intarsia.toolchain.native.region import ArgumentKind, NativeRegion, RegionPort

_LINE: Final = re.compile(rb'\{"any_batch":[^\n]{0,4096}\n')
_WHERE: Final = "native kernels of any batch"


@dataclass(frozen=True, slots=True, eq=False)
class ItemRegion:
    """A compiled region for any number of items.

    Attributes:
        carrying: For each parameter whether it has each item.
        region: The region for one item. Its first constant is the number of items, the last argument of each
            kernel.
    """

    carrying: tuple[bool, ...]
    region: NativeRegion

    def of_items(self, items: int) -> NativeRegion:
        """Return the region with the parameters and results of a number of items; calls are those of one."""
        params = zip(self.region.params, self.carrying, strict=True)
        return replace(
            self.region,
            params=tuple(_port(port, items) if carries else port for port, carries in params),
            results=tuple(_port(port, items) for port in self.region.results),
            arena_bytes=self.region.arena_bytes * items,
        )


def _port(port: RegionPort, items: int) -> RegionPort:
    return replace(port, shape=(port.shape[0] * items, *port.shape[1:]))


def is_item_blob(blob: memoryview) -> bool:
    """Return whether bytes are those of a region for any number of items."""
    return _LINE.match(blob) is not None


def write_item_blob(region: ItemRegion) -> bytes:
    """Return the bytes of a region: a line of JSON, then those of the region for one item."""
    line = json.dumps({"any_batch": list(region.carrying)}, separators=(",", ":")).encode() + b"\n"
    return line + b"\0" * (-len(line) % ALIGNMENT) + write_blob(region.region)


def read_item_blob(blob: memoryview, weights: Mapping[str, Array]) -> ItemRegion:
    """Return the region whose bytes these are.

    Args:
        blob: Bytes that `write_item_blob` wrote; they must not change while the region is used.
        weights: Weights of the source.

    Raises:
        ArtifactError: They are damaged, of another version, or for another CPU.
    """
    line = _LINE.match(blob)
    if line is None:
        raise ArtifactError(f"damaged {_WHERE}: no line of JSON")
    carrying = tuple(Record(parse_json(line[0], _WHERE), _WHERE).read_list("any_batch", as_truth))
    region = read_blob(blob[line.end() + -line.end() % ALIGNMENT :], weights)
    _check(carrying, region)
    return ItemRegion(carrying, region)


def _check(carrying: tuple[bool, ...], region: NativeRegion) -> None:
    """Refuse a region that cannot run any number of items.

    Raises:
        ArtifactError: It cannot.
    """
    if len(carrying) != len(region.params):
        raise ArtifactError(f"damaged {_WHERE}: {len(carrying)} parameters, expected {len(region.params)}")
    ports = [port for port, carries in zip(region.params, carrying, strict=True) if carries]
    if not all(port.shape for port in (*ports, *region.results)):
        raise ArtifactError(f"damaged {_WHERE}: a number has no items")
    items = region.constants[0].array if region.constants else None
    if items is None or items.shape or items.dtype != np.int64:
        raise ArtifactError(f"damaged {_WHERE}: no number of items")
    for call in region.calls:
        last = call.arguments[-1] if call.arguments else None
        if last is None or (last.kind, last.number) != (ArgumentKind.CONSTANT, 0):
            raise ArtifactError(f"damaged {_WHERE}: a kernel does not read the number of items")
    if region.counted or region.checks:
        raise ArtifactError(f"damaged {_WHERE}: they count rows")
