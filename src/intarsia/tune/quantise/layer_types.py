"""Which layers of a program are computed in which narrower type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from intarsia.support.errors import UsageError

ALL: Final = "all"
"""Text of all layers in integers."""

_BFLOAT16: Final = "bfloat16"
"""Word before the numbers of the layers that multiply in bfloat16."""


@dataclass(frozen=True, slots=True)
class LayerTypes:
    """Heavy layers in 8-bit integers and in bfloat16, by number; the others stay in float32.

    Attributes:
        int8: Numbers of the layers in integers.
        bfloat16: Numbers of the layers that multiply in bfloat16.
        all_int8: Whether all layers are in integers, however many there are.
    """

    int8: frozenset[int] = frozenset()
    bfloat16: frozenset[int] = frozenset()
    all_int8: bool = False

    @classmethod
    def of_text(cls, text: str) -> LayerTypes:
        """Return what a text such as "0 3 bfloat16 1 2" or "all" lists.

        Raises:
            UsageError: It lists nothing, something that is no number, or a layer twice.
        """
        if text == ALL:
            return ALL_INT8
        first, word, second = (f" {text} ").partition(f" {_BFLOAT16} ")
        integers, bfloats = (frozenset(_numbers(part, text)) for part in (first, second))
        types = cls(integers, bfloats)
        if (word and not types.bfloat16) or types.int8 & types.bfloat16 or not types:
            raise _unreadable(text)
        return types

    def __bool__(self) -> bool:
        """Whether any layer is in a narrower type."""
        return bool(self.int8 or self.bfloat16 or self.all_int8)

    @property
    def text(self) -> str:
        """The numbers, those of bfloat16 after that word; "all" for all layers in integers."""
        if self.all_int8:
            return ALL
        words = [*_sorted_texts(self.int8)]
        words += [_BFLOAT16, *_sorted_texts(self.bfloat16)] if self.bfloat16 else []
        return " ".join(words)

    @property
    def description(self) -> str:
        """The types with the numbers of layers: "int8 in 3 layers, bfloat16 in 2"; "int8" for all."""
        if self.all_int8:
            return "int8"
        counts = ((name, len(layers)) for name, layers in (("int8", self.int8), (_BFLOAT16, self.bfloat16)))
        texts = [f"{name} in {count}" for name, count in counts if count]
        return ", ".join([f"{texts[0]} layers", *texts[1:]]) if texts else "float32"


ALL_INT8: Final = LayerTypes(all_int8=True)
"""All layers in integers."""


def _numbers(part: str, text: str) -> list[int]:
    words = part.split()
    if not all(word.isascii() and word.isdigit() for word in words):
        raise _unreadable(text)
    return [int(word) for word in words]


def _sorted_texts(layers: Iterable[int]) -> list[str]:
    return [str(number) for number in sorted(layers)]


def _unreadable(text: str) -> UsageError:
    return UsageError(f'layers has {text!r}, expected "all" or numbers such as "0 3 4" or "0 3 bfloat16 1 2"')
