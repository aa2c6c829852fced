"""The threads of a kernel as generators, and a check that no two of them race for an element.

A race is a pair of accesses to one element by two threads, at least one of which writes, without a barrier of
their common block in between. Threads of different blocks have no barrier in common. An asynchronous copy
writes when its thread waits for its group; until then any access to what it writes is a race as well.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from intarsia.ir.dtype import DType
from intarsia.ir.warp import WARP
from intarsia.native.tir.mma_site import MmaSite, elements_of_thread, products_of_thread
from intarsia.native.tir.scalar_math import intrinsic_function
from intarsia.support.errors import ExecutionError


class _Access(NamedTuple):
    block: int
    thread: int
    epoch: int


class CopySite(NamedTuple):
    """What all copies of one statement have in common.

    Attributes:
        width: Number of elements that are written.
        item_bytes: Size of an element in bytes.
        zero: Zero, which is written where nothing is read.
    """

    width: int
    item_bytes: int
    zero: object


class _Copy(NamedTuple):
    """A copy that is under way: offsets in both flat lists, and the number of elements that are read."""

    check: AccessCheck
    target: list[Any]
    offset: int
    source: list[Any]
    start: int
    valid: int
    site: CopySite


_HALF: Final = 2**31
_dot_of_bytes: Final = intrinsic_function("dot_u8s8", DType.INT32)
_dot: Final = intrinsic_function("dot_bf16", DType.FLOAT32)


def _add_bytes(
    sums: list[Any], offset: int, left: SharedTile, right: SharedTile, site: MmaSite, lane: int
) -> None:
    """Add products of words of four bytes to a thread's sums, which wrap around."""
    for number, factors in enumerate(products_of_thread(site, lane), offset):
        total = int(sums[number])
        for first, second in factors:
            words = left.values[left.start + first], right.values[right.start + second]
            total += _dot_of_bytes(*(reversed(words) if site.is_left_signed else words))
        sums[number] = (total + _HALF) % (2 * _HALF) - _HALF


def _product(left: Any, right: Any) -> float:
    return float(left) * float(right)


class SharedTile(NamedTuple):
    """A tile of a factor: the check of its buffer, the buffer's elements, and the offset of the first one."""

    check: AccessCheck
    values: list[Any]
    start: int


class _Product(NamedTuple):
    """A product of a warp: its statement, and the offsets of both tiles."""

    number: int
    left: int
    right: int


@dataclass(slots=True)
class _ThreadCopies:
    """The copies of one thread that are under way: groups, oldest first, and those of no group yet."""

    groups: list[list[_Copy]] = field(default_factory=list)
    started: list[_Copy] = field(default_factory=list)


@dataclass(slots=True)
class KernelClock:
    """The clock of a kernel: its block, its thread, and the number of barriers that the block passed."""

    block: int = 0
    thread: int = 0
    epoch: int = 0
    _copies: dict[int, _ThreadCopies] = field(default_factory=dict)
    _products: dict[int, list[_Product]] = field(default_factory=dict)
    _counts: dict[int, int] = field(default_factory=dict)

    def run_threads(self, block: int, extent: int, body: Callable[[int], Generator[int, None, None]]) -> None:
        """Run the threads of one block, from barrier to barrier in the order of their numbers.

        Args:
            block: Number of the block.
            extent: Number of threads.
            body: Generator function of one thread; it yields the number of each barrier that it reaches.

        Raises:
            ExecutionError: Threads of one block do not reach the same barriers, or race; or one of them ends
                before its copies are done.
        """
        self.block, self.epoch, self._copies, self._products, self._counts = block, 0, {}, {}, {}
        threads = [body(number) for number in range(extent)]
        while True:
            reached = [self._advance(number, thread) for number, thread in enumerate(threads)]
            if len(set(reached)) > 1:
                raise ExecutionError("threads of one block wait at different barriers, or at none")
            if not reached or reached[0] is None:
                self._check_products(extent)
                return
            self.epoch += 1

    def _advance(self, number: int, thread: Generator[int, None, None]) -> int | None:
        self.thread = number
        reached = next(thread, None)
        if reached is None and number in self._copies:
            self._check_copies(self._copies[number])
        return reached

    def _check_copies(self, copies: _ThreadCopies) -> None:
        under_way = [copy for group in copies.groups for copy in group] + copies.started
        if under_way:
            raise ExecutionError(
                f"thread {self.thread} of block {self.block} ends while its copy into element "
                f"{under_way[0].offset} of {under_way[0].check.name} is under way",
                help="end the group of the copy, and wait for it",
            )

    def _check_products(self, extent: int) -> None:
        for number in range(extent):
            if self._counts.get(number, 0) != len(self._products.get(number // WARP, ())):
                raise ExecutionError(
                    f"not all threads of a warp of block {self.block} take part in a product"
                )

    def multiply(
        self, sums: list[Any], offset: int, left: SharedTile, right: SharedTile, site: MmaSite
    ) -> None:
        """Add the product of two tiles to the sums of the current thread.

        Args:
            sums: Elements of its buffer.
            offset: Offset of the first of its four sums.
            left: Tile of the left factor.
            right: Tile of the right factor.
            site: Numbers of the statement.

        Raises:
            ExecutionError: The threads of a warp name different tiles, rows of a tile do not start at a
                multiple of 16 bytes, or another thread has written an element of a tile without a barrier in
                between.
        """
        product = _Product(site.number, left.start, right.start)
        count = self._counts.get(self.thread, 0)
        products = self._products.setdefault(self.thread // WARP, [])
        if count == len(products):
            products.append(product)
        elif products[count] != product:
            raise ExecutionError(f"threads of a warp of block {self.block} multiply different tiles")
        self._counts[self.thread] = count + 1
        lane = self.thread % WARP
        for tile, elements in zip((left, right), elements_of_thread(site, lane), strict=True):
            if tile.start % site.alignment:
                raise ExecutionError(
                    f"a tile starts at element {tile.start} of {tile.check.name}; expected a multiple of "
                    f"{site.alignment}"
                )
            for element in elements:
                tile.check.note_read(tile.start + element)
        if site.has_bytes:
            _add_bytes(sums, offset, left, right, site, lane)
            return
        product_of = _dot if site.has_words else _product
        for number, factors in enumerate(products_of_thread(site, lane), offset):
            total = float(sums[number])
            for first, second in factors:
                total += product_of(left.values[left.start + first], right.values[right.start + second])
            sums[number] = np.float32(total)

    def start_copy(
        self,
        check: AccessCheck,
        target: list[Any],
        offset: int,
        source: list[Any],
        start: int,
        valid: int,
        site: CopySite,
    ) -> None:
        """Start an asynchronous copy of the current thread.

        Args:
            check: Check of the buffer that is written.
            target: Its elements.
            offset: Offset of the first one that is written.
            source: Elements of the buffer that is read.
            start: Offset of the first one that is read.
            valid: Number of elements that are read.
            site: Numbers of the statement.

        Raises:
            ExecutionError: A row does not start at a multiple of the copy's size, the number of elements is
                out of range, or another thread has touched what is written without a barrier in between.
        """
        if not 0 <= valid <= site.width:
            raise ExecutionError(f"a copy of {site.width} elements reads {valid}")
        if offset % site.width or start % site.width:
            size = site.width * site.item_bytes
            raise ExecutionError(
                f"a copy of {size} bytes from element {start} to element {offset} of {check.name}; "
                f"expected multiples of {site.width}"
            )
        for element in range(offset, offset + site.width):
            check.start_copy(element)
        copies = self._copies.setdefault(self.thread, _ThreadCopies())
        copies.started.append(_Copy(check, target, offset, source, start, valid, site))

    def commit_copies(self) -> None:
        """End a group of the current thread."""
        copies = self._copies.setdefault(self.thread, _ThreadCopies())
        copies.groups.append(copies.started)
        copies.started = []

    def wait_for_copies(self, pending: int) -> None:
        """Do the copies of the current thread's groups, but for those of the last ones.

        Raises:
            ExecutionError: Another thread has touched what is written since the copy started.
        """
        groups = self._copies.setdefault(self.thread, _ThreadCopies()).groups
        while len(groups) > pending:
            for check, target, offset, source, start, valid, site in groups.pop(0):
                for element in range(offset, offset + site.width):
                    check.end_copy(element)
                values = source[start : start + valid]
                target[offset : offset + site.width] = values + [site.zero] * (site.width - valid)


@dataclass(slots=True)
class AccessCheck:
    """The accesses to one buffer in one kernel.

    Attributes:
        name: Name of the buffer.
        clock: Clock of the kernel.
        writes: Last write of each element, by offset.
        reads: Last read of each element by each thread since the kernel began.
        copies: Start of the asynchronous copy into an element, while it is under way.
    """

    name: str
    clock: KernelClock
    writes: dict[int, _Access] = field(default_factory=dict)
    reads: dict[int, dict[tuple[int, int], _Access]] = field(default_factory=dict)
    copies: dict[int, _Access] = field(default_factory=dict)

    def note_read(self, offset: int) -> None:
        """Note a read of an element.

        Raises:
            ExecutionError: Another thread has written the element without a barrier in between, or a copy is
                under way.
        """
        access = self._now()
        self._check_copy(offset, access)
        self._check(offset, self.writes.get(offset), access)
        self.reads.setdefault(offset, {})[access.block, access.thread] = access

    def note_write(self, offset: int) -> None:
        """Note a write of an element.

        Raises:
            ExecutionError: Another thread has read or written it without a barrier in between, or a copy is
                under way.
        """
        access = self._now()
        self._check_copy(offset, access)
        self._check(offset, self.writes.get(offset), access)
        for earlier in self.reads.get(offset, {}).values():
            self._check(offset, earlier, access)
        self.reads.pop(offset, None)
        self.writes[offset] = access

    def start_copy(self, offset: int) -> None:
        """Note that an asynchronous copy will write an element.

        Raises:
            ExecutionError: Another thread has read or written it without a barrier in between, or a copy is
                under way.
        """
        self.note_write(offset)
        self.copies[offset] = self.writes[offset]

    def end_copy(self, offset: int) -> None:
        """Note that an asynchronous copy writes an element now.

        Raises:
            ExecutionError: Another thread has read or written it without a barrier in between.
        """
        del self.copies[offset]
        self.note_write(offset)

    def _check_copy(self, offset: int, access: _Access) -> None:
        if self.copies and offset in self.copies:
            copy = self.copies[offset]
            raise ExecutionError(
                f"thread {access.thread} of block {access.block} and the copy of thread {copy.thread} race "
                f"for element {offset} of {self.name}",
                help="wait for the group of the copy; a barrier after that lets other threads touch it",
            )

    def _now(self) -> _Access:
        return _Access(self.clock.block, self.clock.thread, self.clock.epoch)

    def _check(self, offset: int, earlier: _Access | None, access: _Access) -> None:
        if earlier is None or earlier[:2] == access[:2]:
            return
        if earlier.block == access.block and earlier.epoch < access.epoch:
            return
        raise ExecutionError(
            f"threads {earlier.thread} of block {earlier.block} and {access.thread} of block {access.block} "
            f"race for element {offset} of {self.name}",
            help="a barrier has to stand between the two accesses, or each thread needs elements of its own",
        )
