"""What the items of a value are, and the numbers of them that kernels are given."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class ItemKind(StrEnum):
    """What a value has one item of; items lie one behind another."""

    TOKENS = "tokens"
    """Each token of each text; of a batch without texts each of its items."""
    TEXTS = "texts"
    """Each text."""
    POSITIONS = "positions"
    """Each position in a text, the same for all texts."""
    KEYS = "keys"
    """Each token of each text that others attend to: those of the past, and new ones."""
    JOINED = "joined"
    """Keys or values of all tokens that others attend to, (texts, heads, keys, size)."""
    PAST = "past"
    """Keys or values of the past, (texts, heads, past tokens, size)."""


NUMBER_OF: Final = MappingProxyType({kind: number for number, kind in enumerate(ItemKind)})
"""Which of the numbers of a region counts items of a kind: tokens, texts, tokens of a text, keys, keys of a
text, and past tokens of a text."""
TEXTS_AND_LENGTH: Final = (NUMBER_OF[ItemKind.TEXTS], NUMBER_OF[ItemKind.POSITIONS])
"""The numbers that kernels are given which read or write several tokens of a text."""
WITH_KEYS: Final = (*TEXTS_AND_LENGTH, NUMBER_OF[ItemKind.JOINED])
"""The numbers that attention with a past is given."""
WITH_PAST: Final = (*TEXTS_AND_LENGTH, NUMBER_OF[ItemKind.PAST])
"""The numbers that kernels are given which count from the end of the past."""
