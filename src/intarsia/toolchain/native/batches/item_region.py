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

from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.runtime.bounded_json import parse_json
from intarsia.runtime.json_record import Record, as_count
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
        axes: For each parameter the axis of the items, behind axes of extent 1; None if it has none.
        result_axes: Axis of the items of each result, all of which have items.
        most_items: Maximum number of items.
        region: The region for one item. Its first constant is the number of items, the last argument of each
            kernel.
    """

    axes: tuple[int | None, ...]
    result_axes: tuple[int, ...]
    most_items: int
    region: NativeRegion

    def of_items(self, items: int) -> NativeRegion:
        """Return the region with the parameters and results of a number of items; calls are those of one."""
        params = zip(self.region.params, self.axes, strict=True)
        results = zip(self.region.results, self.result_axes, strict=True)
        return replace(
            self.region,
            params=tuple(port if axis is None else _port(port, axis, items) for port, axis in params),
            results=tuple(_port(port, axis, items) for port, axis in results),
            arena_bytes=self.region.arena_bytes * items,
        )


def _port(port: RegionPort, axis: int, items: int) -> RegionPort:
    shape = port.shape
    return replace(port, shape=(*shape[:axis], shape[axis] * items, *shape[axis + 1 :]))


def is_item_blob(blob: memoryview) -> bool:
    """Return whether bytes are those of a region for any number of items."""
    return _LINE.match(blob) is not None


def write_item_blob(region: ItemRegion) -> bytes:
    """Return the bytes of a region: a line of JSON, then those of the region for one item."""
    head = {"any_batch": region.axes, "results": region.result_axes, "most": region.most_items}
    line = json.dumps(head, separators=(",", ":")).encode() + b"\n"
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
    head = Record(parse_json(line[0], _WHERE), _WHERE)
    axes = tuple(head.read_list("any_batch", _as_axis))
    results = tuple(head.read_list("results", as_count))
    most = as_count(head.get("most"), _WHERE)
    region = read_blob(blob[line.end() + -line.end() % ALIGNMENT :], weights)
    whole = ItemRegion(axes, results, most, region)
    _check(whole)
    return whole


def _as_axis(value: object, where: str) -> int | None:
    return None if value is None else as_count(value, where)


def _check(whole: ItemRegion) -> None:
    """Refuse a region that cannot run any number of items.

    Raises:
        ArtifactError: It cannot.
    """
    region = whole.region
    axes = *whole.axes, *whole.result_axes
    ports = *region.params, *region.results
    if len(whole.axes) != len(region.params) or len(axes) != len(ports):
        raise ArtifactError(f"damaged {_WHERE}: {len(axes)} axes of items, expected {len(ports)}")
    for port, axis in zip(ports, axes, strict=True):
        if axis is not None and (axis >= len(port.shape) or any(extent != 1 for extent in port.shape[:axis])):
            raise ArtifactError(f"damaged {_WHERE}: {port.name} has no items in axis {axis}")
    if not 1 <= whole.most_items <= MOST_ITEMS:
        raise ArtifactError(f"damaged {_WHERE}: up to {whole.most_items} items")
    items = region.constants[0].array if region.constants else None
    if items is None or items.shape or items.dtype != np.int64:
        raise ArtifactError(f"damaged {_WHERE}: no number of items")
    for call in region.calls:
        last = call.arguments[-1] if call.arguments else None
        if last is None or (last.kind, last.number) != (ArgumentKind.CONSTANT, 0):
            raise ArtifactError(f"damaged {_WHERE}: a kernel does not read the number of items")
    if region.counted or region.checks:
        raise ArtifactError(f"damaged {_WHERE}: they count rows")
