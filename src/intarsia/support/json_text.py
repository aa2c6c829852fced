"""Parse JSON that others may have written: every failure is a ValueError."""

from __future__ import annotations

import json
from typing import Any


def parse_json_text(text: str | bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: It is no JSON, or lists in it are nested deeper than Python can follow.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
