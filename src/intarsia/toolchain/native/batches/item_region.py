"""Regions whose kernels run any number of items, which are numbers that they read.

A value for n items is n values for one, one behind another. So the memory of n items is that of one, with all
offsets and sizes n times as large: nothing is planned for a number of items.

Sizes are what a call decides: the size of a batch, or the number of texts and that of the tokens of each.
Numbers are made of them: there are as many tokens as texts times tokens of a text, and as many keys of a text
as past tokens and new ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final, TypeAlias

import numpy as np

from intarsia.native.execution.item_kind import NUMBER_OF, ItemKind
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.runtime.bounded_json import parse_json
from intarsia.runtime.json_record import Record, as_count, as_list
from intarsia.runtime.kernel import Array
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.errors import ArtifactError, ExecutionError
from intarsia.toolchain.native.blob import read_blob, write_blob
from intarsia.toolchain.native.region import ArgumentKind, NativeRegion, RegionCall, RegionPort

Number: TypeAlias = tuple[tuple[int, ...], ...]
"""A product of sums of sizes, by their positions; () is 1."""
SizedAxes: TypeAlias = tuple[tuple[int, Number], ...]
"""Axes of an array that have a number of items for each of one item, or as many as a sum, ascending."""

_SHORT: Final = (ItemKind.TOKENS, ItemKind.TEXTS, ItemKind.POSITIONS)
"""Kinds of values whose memory does not grow with the past."""
_LINE: Final = re.compile(rb'\{"any_batch":[^\n]{0,65536}\n')
_WHERE: Final = "native kernels of any batch"


@dataclass(frozen=True, slots=True, eq=False)
class ItemRegion:
    """A compiled region for any number of items.

    Attributes:
        limits: Least and greatest value of each size.
        numbers: The number of items of each `ItemKind`. They are the first constants of the region, and last
            arguments of kernels.
        axes: The axes of each parameter that have items, behind axes of extent 1.
        result_axes: The axes of each result that have items.
        long_begin: Offset in the arena from which on values have an item for each key.
        region: The region for one item.
    """

    limits: tuple[tuple[int, int], ...]
    numbers: tuple[Number, ...]
    axes: tuple[SizedAxes, ...]
    result_axes: tuple[SizedAxes, ...]
    long_begin: int
    region: NativeRegion

    def check_sizes(self, sizes: Sequence[int]) -> None:
        """Do nothing if the kernels run these sizes.

        Raises:
            ExecutionError: One is out of its range, or there are too many items in all.
        """
        for size, (low, high) in zip(sizes, self.limits, strict=True):
            if size > high:
                raise ExecutionError(f"native runs up to {high} items here, found {size}")
            if size < low:
                raise ExecutionError(f"native runs {low} items or more here, found {size}")
        counts, high = self.counts(sizes), self.limits[-1][1]
        if self.has_past and counts[NUMBER_OF[ItemKind.JOINED]] > high:
            raise ExecutionError(
                f"native runs up to {high} items here, found {counts[NUMBER_OF[ItemKind.JOINED]]}"
            )
        if max(counts) > MOST_ITEMS:
            raise ExecutionError(f"native runs up to {MOST_ITEMS} items here, found {max(counts)}")

    def sizes_of(self, shapes: Sequence[tuple[int, ...] | None]) -> tuple[int, ...]:
        """Return the sizes of a call, of which all parameters that have one have the same.

        Args:
            shapes: Shapes of the parameters; None for what is no array.

        Raises:
            ExecutionError: They have different ones.
        """
        counts: list[set[int]] = [set() for _ in self.limits]
        for shape, axes in zip(shapes, self.axes, strict=True):
            for axis, ((size, *others),) in axes:
                if shape is not None and len(shape) > axis and not others:
                    counts[size].add(shape[axis])
        for given in counts:
            if len(given) != 1:
                raise ExecutionError(
                    f"the parameters have batches of {sorted(given)} items, expected one size"
                )
        return tuple(int(item.pop()) for item in counts)

    @property
    def has_past(self) -> bool:
        """Whether the last size is the number of past tokens of each text."""
        return bool(self.numbers[NUMBER_OF[ItemKind.PAST]])

    def counts(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of items for given sizes."""
        return tuple(_value(number, sizes) for number in self.numbers)

    def of_sizes(self, sizes: Sequence[int]) -> NativeRegion:
        """Return the region with the parameters and results of given sizes; calls are those of one item."""
        params = zip(self.region.params, self.axes, strict=True)
        results = zip(self.region.results, self.result_axes, strict=True)
        return replace(
            self.region,
            params=tuple(_port(port, axes, sizes) for port, axes in params),
            results=tuple(_port(port, axes, sizes) for port, axes in results),
        )

    def arena_bytes(self, sizes: Sequence[int]) -> int:
        """Return the size of the part of the arena that does not grow with the past."""
        counts = self.counts(sizes)
        return self.long_begin * max(counts[NUMBER_OF[kind]] for kind in _SHORT)

    def long_bytes(self, keys: int) -> int:
        """Return the size of the part of the arena with values of keys, for a number of keys of all texts."""
        return (self.region.arena_bytes - self.long_begin) * keys


def _value(number: Number, sizes: Sequence[int]) -> int:
    return prod(sum(sizes[position] for position in summands) for summands in number)


def _port(port: RegionPort, axes: SizedAxes, sizes: Sequence[int]) -> RegionPort:
    shape = list(port.shape)
    for axis, number in axes:
        is_sum = any(len(summands) > 1 for summands in number)
        shape[axis] = _value(number, sizes) * (1 if is_sum else shape[axis])
    return replace(port, shape=tuple(shape))


def is_item_blob(blob: memoryview) -> bool:
    """Return whether bytes are those of a region for any number of items."""
    return _LINE.match(blob) is not None


def write_item_blob(region: ItemRegion) -> bytes:
    """Return the bytes of a region: a line of JSON, then those of the region for one item."""
    head = {
        "any_batch": region.axes,
        "results": region.result_axes,
        "limits": region.limits,
        "numbers": region.numbers,
        "long": region.long_begin,
    }
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
    region = read_blob(blob[line.end() + -line.end() % ALIGNMENT :], weights)
    whole = ItemRegion(
        tuple(head.read_list("limits", _as_limits)),
        tuple(head.read_list("numbers", _as_number)),
        tuple(head.read_list("any_batch", _as_axes)),
        tuple(head.read_list("results", _as_axes)),
        as_count(head.get("long"), _WHERE),
        region,
    )
    _check(whole)
    return whole


def _as_number(value: object, where: str) -> Number:
    return tuple(_as_counts(item, where) for item in as_list(value, where))


def _as_counts(value: object, where: str) -> tuple[int, ...]:
    return tuple(as_count(item, where) for item in as_list(value, where))


def _as_axes(value: object, where: str) -> SizedAxes:
    pairs = []
    for item in as_list(value, where):
        pair = as_list(item, where)
        if len(pair) != 2:
            raise ArtifactError(f"damaged {where}: {pair!r} is no axis with a number")
        pairs.append((as_count(pair[0], where), _as_number(pair[1], where)))
    return tuple(pairs)


def _as_limits(value: object, where: str) -> tuple[int, int]:
    low, high, *others = (*_as_counts(value, where), 0, 0)
    if len(others) != 2:
        raise ArtifactError(f"damaged {where}: {value!r} is no range")
    return low, high


def _check(whole: ItemRegion) -> None:
    """Refuse a region that cannot run any number of items.

    Raises:
        ArtifactError: It cannot.
    """
    region = whole.region
    axes = *whole.axes, *whole.result_axes
    ports = *region.params, *region.results
    if len(whole.axes) != len(region.params) or len(axes) != len(ports):
        raise ArtifactError(f"damaged {_WHERE}: {len(axes)} arrays with items, expected {len(ports)}")
    for port, sized in zip(ports, axes, strict=True):
        _check_axes(port, sized)
    numbers = (*whole.numbers, *(number for sized in axes for _, number in sized))
    positions = {position for number in numbers for summands in number for position in summands}
    if any(position >= len(whole.limits) for position in positions):
        raise ArtifactError(f"damaged {_WHERE}: a number of items without a size")
    if any(not 0 <= low <= high <= MOST_ITEMS for low, high in whole.limits):
        raise ArtifactError(f"damaged {_WHERE}: up to {max(high for _, high in whole.limits)} items")
    if any(len(number) != 1 for sized in whole.axes for _, number in sized):
        raise ArtifactError(f"damaged {_WHERE}: a parameter with several sizes in an axis")
    given = {number for sized in whole.axes for _, number in sized}
    if not given.issuperset({((at,),) for at in range(len(whole.limits))}):
        raise ArtifactError(f"damaged {_WHERE}: a size that no parameter has")
    if whole.long_begin > region.arena_bytes or whole.long_begin % ALIGNMENT:
        raise ArtifactError(f"damaged {_WHERE}: values of keys are outside the arena")
    _check_numbers(whole)
    if region.counted or region.checks:
        raise ArtifactError(f"damaged {_WHERE}: they count rows")


def _check_axes(port: RegionPort, sized: SizedAxes) -> None:
    positions = [axis for axis, _ in sized]
    last = max(positions, default=0)
    if sized and (positions != sorted(set(positions)) or last >= len(port.shape)):
        raise ArtifactError(f"damaged {_WHERE}: {port.name} has no items in axis {last}")


def _check_numbers(whole: ItemRegion) -> None:
    """Refuse kernels that are not given numbers of items.

    Raises:
        ArtifactError: There is one.
    """
    region, count = whole.region, len(NUMBER_OF)
    numbers = [constant.array for constant in region.constants[:count]]
    if len(whole.numbers) != count or len(numbers) != count:
        raise ArtifactError(f"damaged {_WHERE}: no number of items")
    if any(number.shape or number.dtype != np.int64 for number in numbers):
        raise ArtifactError(f"damaged {_WHERE}: no number of items")
    for call in region.calls:
        last = call.arguments[-1] if call.arguments else None
        if last is None or last.kind is not ArgumentKind.CONSTANT or last.number >= count:
            raise ArtifactError(f"damaged {_WHERE}: a kernel does not read the number of items")
        _check_tables(whole, call)


def _check_tables(whole: ItemRegion, call: RegionCall) -> None:
    """Refuse constants that are neither one item nor one for each of the most tokens.

    Raises:
        ArtifactError: There is one.
    """
    most = whole.limits[-1][1]
    parameters = whole.region.kernels[call.kernel].parameters
    for argument, parameter in zip(call.arguments, parameters, strict=True):
        if argument.kind is ArgumentKind.CONSTANT:
            size = prod(parameter.shape) * parameter.dtype.itemsize
            if whole.region.constants[argument.number].array.nbytes not in (size, size * most):
                raise ArtifactError(f"damaged {_WHERE}: a table that is not for {most} tokens")
