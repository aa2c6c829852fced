"""Names of built-in models in arguments: "zoo:mnist"."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ZOO_PREFIX: Final = "zoo:"


def zoo_name(text: str) -> str | None:
    """Return the name after "zoo:"; None if the text is no such name, or a file of that name exists."""
    if not text.startswith(ZOO_PREFIX) or Path(text).exists():
        return None
    return text.removeprefix(ZOO_PREFIX)
