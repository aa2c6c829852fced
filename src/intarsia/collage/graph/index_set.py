"""Sets of nodes of a graph, as bit vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class IndexSet:
    """Indices below `size`, bit i of `bits` for index i; a Python int, so that set operations are words wide.

    Operations take sets of one size. Each costs size/64 steps; iterating costs one more for each member.
    `<` orders sets by the first index in which they differ: the one that has it comes first. It is no test
    for subsets (`is_subset`).

    Raises:
        ValueError: A bit at or above `size`; from operations, sets of two sizes.
    """

    bits: int
    size: int

    def __post_init__(self) -> None:
        """Refuse bits out of range."""
        if self.bits < 0 or self.bits.bit_length() > self.size:
            raise ValueError(f"bits {self.bits:#x} are out of range for a set of size {self.size}")

    @classmethod
    def of(cls, size: int, indices: Iterable[int] = ()) -> IndexSet:
        """The set of some indices.

        Raises:
            ValueError: An index that is out of range, or given twice.
        """
        packed = bytearray(size // 8 + 1)
        for index in indices:
            if not 0 <= index < size:
                raise ValueError(f"index {index} is out of range for a set of size {size}")
            byte, bit = index >> 3, 1 << (index & 7)
            if packed[byte] & bit:
                raise ValueError(f"index {index} is given twice")
            packed[byte] |= bit
        return cls(int.from_bytes(packed, "little"), size)

    @classmethod
    def full(cls, size: int) -> IndexSet:
        """All indices below `size`."""
        return cls((1 << size) - 1, size)

    def __or__(self, other: IndexSet) -> IndexSet:
        self._check(other)
        return IndexSet(self.bits | other.bits, self.size)

    def __and__(self, other: IndexSet) -> IndexSet:
        self._check(other)
        return IndexSet(self.bits & other.bits, self.size)

    def __sub__(self, other: IndexSet) -> IndexSet:
        self._check(other)
        return IndexSet(self.bits & ~other.bits, self.size)

    def added(self, index: int) -> IndexSet:
        """The set with one index more (or the same, if it has it)."""
        return IndexSet(self.bits | 1 << index, self.size)

    def is_disjoint(self, other: IndexSet) -> bool:
        """Whether the two have no index in common."""
        return not self.intersects(other)

    def intersects(self, other: IndexSet) -> bool:
        """Whether the two have an index in common."""
        self._check(other)
        return self.bits & other.bits != 0

    def is_subset(self, other: IndexSet) -> bool:
        """Whether all members are members of `other`; equal sets are subsets."""
        self._check(other)
        return self.bits & ~other.bits == 0

    def is_empty(self) -> bool:
        """Whether there is no member."""
        return self.bits == 0

    def subst(self, size: int, new_index: Mapping[int, int]) -> IndexSet:
        """The members under their indices in another graph of `size` nodes.

        Raises:
            ValueError: A member has no new index, two have the same, or one is out of range.
        """
        missing = [index for index in self if index not in new_index]
        if missing:
            raise ValueError(f"index {missing[0]} has no new index")
        return IndexSet.of(size, (new_index[index] for index in self))

    def first_inside_index(self) -> int:
        """The smallest member; `size` for the empty set."""
        return (self.bits & -self.bits).bit_length() - 1 if self.bits else self.size

    def last_inside_index(self) -> int:
        """The largest member; -1 for the empty set."""
        return self.bits.bit_length() - 1

    def next_index(self, index: int) -> int:
        """The smallest member above `index`; `size` if there is none."""
        above = self.bits >> (index + 1)
        return index + (above & -above).bit_length() if above else self.size

    def first_outside_index(self) -> int:
        """The smallest index that is no member; `size` for the full set."""
        return (~self.bits & (self.bits + 1)).bit_length() - 1

    def __contains__(self, index: int) -> bool:
        return index >= 0 and self.bits >> index & 1 == 1

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __bool__(self) -> bool:
        return self.bits != 0

    def __iter__(self) -> Iterator[int]:
        """The members, smallest first."""
        text = format(self.bits, "b")[::-1]
        index = text.find("1")
        while index >= 0:
            yield index
            index = text.find("1", index + 1)

    def __lt__(self, other: IndexSet) -> bool:
        self._check(other)
        differing = self.bits ^ other.bits
        return self.bits & differing & -differing != 0

    def __gt__(self, other: IndexSet) -> bool:
        return other < self

    def __le__(self, other: IndexSet) -> bool:
        return not other < self

    def __ge__(self, other: IndexSet) -> bool:
        return not self < other

    def __str__(self) -> str:
        """The members as ranges: "{0,3..5}"."""
        parts: list[str] = []
        index = self.first_inside_index()
        while index < self.size:
            end = index + IndexSet(self.bits >> index, self.size - index).first_outside_index()
            parts.append(str(index) if end == index + 1 else f"{index}..{end - 1}")
            index = self.next_index(end)
        return "{" + ",".join(parts) + "}"

    __repr__ = __str__

    def _check(self, other: IndexSet) -> None:
        if self.size != other.size:
            raise ValueError(f"index sets of graphs of {self.size} and {other.size} nodes do not combine")
