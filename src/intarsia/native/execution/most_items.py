"""The largest batch that kernels with the number of items as an argument run."""

from __future__ import annotations

from typing import Final

MOST_ITEMS: Final = 1 << 20
"""Maximum number of items of a call: with 4 TiB of each, offsets stay within 63 bits."""
