"""The largest batch, and the longest text, that kernels with the number of items as an argument run."""

from __future__ import annotations

from typing import Final

MOST_ITEMS: Final = 1 << 20
"""Maximum number of items of a call: with 4 TiB of each, offsets stay within 63 bits."""
MOST_TOKENS: Final = 1 << 12
"""Maximum number of tokens of a text where tokens attend to each other.

Each thread has scratch memory for the keys of a head and for the scores of a few queries, 1.2 MiB with heads
of 64 numbers. What fewer tokens do not need is never touched."""
