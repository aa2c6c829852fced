"""What the messages of all engines need: theirs are long and full of C++ positions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_LONGEST: Final = 300


def replaced(text: str, rules: Iterable[tuple[str, str]]) -> str:
    """Return a text after the replacements of all rules (pattern, replacement), in their order."""
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text


def shortened(text: str, error: BaseException) -> str:
    """Return a text in one line of at most 300 characters; the name of the error's class if it is empty."""
    text = " ".join(text.split()).rstrip(" .:")
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 3].rstrip() + "..."
    return text or type(error).__name__
