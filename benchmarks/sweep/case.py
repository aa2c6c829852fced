"""A drawn layer as text, and the distributions from which its sizes are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeVar

import numpy as np

Value = int | str | tuple[int, ...]
Item = TypeVar("Item")

_CHANNELS: Final = (
    *(8, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160),
    *(192, 256, 320, 384, 512, 640, 768, 1024),
)
"""Numbers of channels that published networks use most."""
_SIDES: Final = (
    *(7, 8, 10, 13, 14, 16, 19, 20, 26, 28, 32, 38, 40, 52, 56, 64, 80),
    *(112, 128, 160, 224, 256, 320, 640),
)
"""Sides of feature maps that published networks use most."""
_USUAL: Final = 0.6
"""Share of the sizes that is drawn from those lists; the others are any number."""


@dataclass(frozen=True)
class Case:
    """A layer: a family and its parameters.

    Attributes:
        family: Name of the family.
        values: Parameters by name.
    """

    family: str
    values: Mapping[str, Value]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the case of a text such as "pointwise n=1 c=64 k=128 image=56,56".

        Raises:
            ValueError: The text is not that of a case.
        """
        family, *fields = text.split()
        if not all("=" in field for field in fields):
            raise ValueError(f"a case is a family and fields NAME=VALUE, not {text!r}")
        pairs = (field.split("=", 1) for field in fields)
        return cls(family, {name: _parse_value(value) for name, value in pairs})

    @property
    def text(self) -> str:
        """The case as text, which `parse` reads."""
        return " ".join([self.family, *(f"{name}={_value_text(item)}" for name, item in self.values.items())])

    def count(self, name: str) -> int:
        """Return a parameter that is a number."""
        value = self.values[name]
        assert isinstance(value, int), f"{name} of {self.text} is no number"
        return value

    def counts(self, name: str) -> tuple[int, ...]:
        """Return a parameter that is a tuple of numbers."""
        value = self.values[name]
        assert isinstance(value, tuple), f"{name} of {self.text} is no tuple"
        return value

    def word(self, name: str) -> str:
        """Return a parameter that is a word."""
        value = self.values[name]
        assert isinstance(value, str), f"{name} of {self.text} is no word"
        return value


def _value_text(value: Value) -> str:
    if not isinstance(value, tuple):
        return str(value)
    return f"{value[0]}," if len(value) == 1 else ",".join(map(str, value))


def _parse_value(text: str) -> Value:
    if "," in text:
        return tuple(int(item) for item in text.split(",") if item)
    return int(text) if text.lstrip("-").isdigit() else text


class Sizes:
    """Draws of sizes and choices.

    Args:
        generator: Source of the draws.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def choose(self, items: Sequence[Item], weights: Sequence[float] | None = None) -> Item:
        """Return one of some items.

        Args:
            items: The items.
            weights: Relative frequencies; None if all are equally frequent.
        """
        shares = None if weights is None else np.array(weights) / sum(weights)
        return items[int(self._generator.choice(len(items), p=shares))]

    def flip(self, share: float) -> bool:
        """Return true in a share of the draws."""
        return bool(self._generator.random() < share)

    def between(self, low: int, high: int) -> int:
        """Return a number between two, both included; small ones are as frequent as large ones."""
        logarithm = self._generator.uniform(np.log(low), np.log(high + 1))
        return min(high, int(np.exp(logarithm)))

    def channels(self, high: int = 1024) -> int:
        """Return a number of channels, often a usual one."""
        usual = [count for count in _CHANNELS if count <= high]
        return self.choose(usual) if self.flip(_USUAL) else self.between(3, high)

    def side(self, low: int = 7, high: int = 640) -> int:
        """Return the side of a feature map, often a usual one."""
        usual = [side for side in _SIDES if low <= side <= high]
        return self.choose(usual) if self.flip(_USUAL) else self.between(low, high)

    def batch(self) -> int:
        """Return a batch size, which is mostly 1."""
        return self.choose((1, 2, 3, 4, 8, 16), (0.6, 0.1, 0.05, 0.1, 0.1, 0.05))

    def image(self, rank: int) -> tuple[int, ...]:
        """Return the extents of a feature map."""
        if rank == 1:
            return (self.between(16, 16_000),)
        if rank == 3:
            return (self.between(4, 32), *[self.side(7, 112)] * 2)
        height = self.side()
        return (height, self.side() if self.flip(0.25) else height)

    def shuffled(self, items: Sequence[int]) -> tuple[int, ...]:
        """Return some numbers in another order."""
        return tuple(int(item) for item in self._generator.permutation(list(items)))

    def repeat(self, count: int) -> Iterator[Self]:
        """Return this object some times, for a loop of draws."""
        return (self for _ in range(count))
