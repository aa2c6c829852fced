"""The cost of running something: seconds, invalid, or unknown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite
from typing import ClassVar


class CostKind(IntEnum):
    """What is known of a cost, in the order of `Cost.sort_key`."""

    VALUE = 0
    UNKNOWN = 1
    INVALID = 2


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds per run; or INVALID, for what cannot be compiled and run; or UNKNOWN, before it is measured.

    `==` says whether two costs say the same, so UNKNOWN equals itself. `<`, `<=`, `>` and `>=` ask which is
    cheaper: INVALID is dearer than every value, and UNKNOWN has no answer, so that it raises. To order costs
    of all kinds, for a list or a heap, use `sort_key`; to ask first, `is_comparable`.

    Attributes:
        kind: Whether there is a value.
        seconds: The value, 0 or more and finite; 0 where there is none.

    Raises:
        ValueError: Seconds that are negative, infinite or no number; from `<` and `-`, see there.
    """

    kind: CostKind
    seconds: float = 0.0

    ZERO: ClassVar[Cost]
    INVALID: ClassVar[Cost]
    UNKNOWN: ClassVar[Cost]

    def __post_init__(self) -> None:
        """Refuse what is no duration."""
        if not (isfinite(self.seconds) and self.seconds >= 0):
            raise ValueError(f"a cost of {self.seconds} s; expected a finite number, 0 or more")
        if self.kind is not CostKind.VALUE and self.seconds:
            raise ValueError(f"a cost that is {self.kind.name.lower()} has no seconds, found {self.seconds}")

    @classmethod
    def value(cls, seconds: float) -> Cost:
        """A known cost."""
        return cls(CostKind.VALUE, float(seconds))

    @classmethod
    def total(cls, costs: Iterable[Cost]) -> Cost:
        """The sum of all; ZERO for none."""
        total = cls.ZERO
        for cost in costs:
            total += cost
        return total

    @property
    def is_value(self) -> bool:
        """Whether it is known, in seconds."""
        return self.kind is CostKind.VALUE

    @property
    def is_invalid(self) -> bool:
        """Whether it stands for what cannot run."""
        return self.kind is CostKind.INVALID

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known."""
        return self.kind is CostKind.UNKNOWN

    @property
    def sort_key(self) -> tuple[int, float]:
        """Orders costs of all kinds: values from cheap to dear, then UNKNOWN, then INVALID."""
        return self.kind, self.seconds

    def is_comparable(self, other: Cost) -> bool:
        """Whether `<` has an answer: neither is UNKNOWN."""
        return not (self.is_unknown or other.is_unknown)

    def __add__(self, other: Cost) -> Cost:
        """Both, one after the other: INVALID if one of them is, else UNKNOWN if one of them is."""
        kind = max(self.kind, other.kind)
        return Cost.value(self.seconds + other.seconds) if kind is CostKind.VALUE else Cost(kind)

    def __sub__(self, other: Cost) -> Cost:
        """What is left of this cost without a part of it.

        Raises:
            ValueError: The part is dearer than the whole, or INVALID.
        """
        if other.is_invalid:
            raise ValueError(f"{other} cannot be taken from {self}")
        if self.is_value and other.is_value:
            if other.seconds > self.seconds:
                raise ValueError(f"{other} cannot be taken from {self}: the part is dearer than the whole")
            return Cost.value(self.seconds - other.seconds)
        return Cost(max(self.kind, other.kind))

    def __lt__(self, other: Cost) -> bool:
        """Whether this is cheaper.

        Raises:
            ValueError: One of the two is UNKNOWN.
        """
        if not self.is_comparable(other):
            raise ValueError(f"a cost of {self} and one of {other} do not compare; measure, or use sort_key")
        return self.sort_key < other.sort_key

    def __gt__(self, other: Cost) -> bool:
        return other < self

    def __le__(self, other: Cost) -> bool:
        return not other < self

    def __ge__(self, other: Cost) -> bool:
        return not self < other

    def __str__(self) -> str:
        """In the unit that fits: "12.3us", "4.56ms", "1.2s"."""
        if not self.is_value:
            return self.kind.name.lower()
        if self.seconds < 1e-3:
            return f"{self.seconds * 1e6:.4g}us"
        return f"{self.seconds * 1e3:.4g}ms" if self.seconds < 1 else f"{self.seconds:.4g}s"


Cost.ZERO = Cost.value(0.0)
Cost.INVALID = Cost(CostKind.INVALID)
Cost.UNKNOWN = Cost(CostKind.UNKNOWN)
