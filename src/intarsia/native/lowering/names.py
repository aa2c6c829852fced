"""Names of loop variables."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from intarsia.support.free_names import free_name

_STRANGE: Final = re.compile(r"[^A-Za-z0-9_]+")


def loop_name(iterator: str, around: Collection[str]) -> str:
    """Return a plain name for an iterator such as i.0@j.0@ that no loop around it has."""
    plain = _STRANGE.sub("_", iterator).strip("_") or "unit"
    return free_name(plain, around)
