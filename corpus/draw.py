"""The choices of a recipe."""

from __future__ import annotations

import zlib
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Choice = TypeVar("Choice")


class Draw:
    """Configuration of a recipe: the default choices, or random ones.

    Args:
        recipe: Name of the recipe, so that recipes draw independently.
        seed: Seed of a random configuration, or None for the defaults.
    """

    def __init__(self, recipe: str, seed: int | None = None) -> None:
        name = zlib.crc32(recipe.encode())
        self.seed = name % 2**31 if seed is None else (name + 7919 * (seed + 1)) % 2**31
        self.values = np.random.default_rng(self.seed)
        self._choices = None if seed is None else np.random.default_rng((seed, name))
        self.drawn: dict[str, Any] = {}

    def choose(self, what: str, *choices: Choice) -> Choice:
        """Return the first choice, or a random one if the configuration is random.

        Args:
            what: Name of the choice in the record of the model.
            choices: Default value, then the alternatives.
        """
        number = 0 if self._choices is None else int(self._choices.integers(len(choices)))
        self.drawn[what] = choices[number]
        return choices[number]

    def normal(self, *shape: int) -> npt.NDArray[np.float32]:
        """Return standard normal numbers."""
        return self.values.standard_normal(shape).astype(np.float32)
