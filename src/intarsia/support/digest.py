"""Digests that are the same in every process and on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

DIGEST_BYTES = 16
"""Bytes of a digest: 128 bits, so that accidental collisions are out of reach."""


def digest_bytes(*parts: bytes | memoryview) -> bytes:
    """Return the BLAKE2b digest of a list of byte strings."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        # The length before each part keeps ("ab", "c") and ("a", "bc") apart.
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.digest()


def digest_text(parts: Iterable[str]) -> str:
    """Return the hexadecimal digest of a list of strings."""
    return digest_bytes(*(part.encode() for part in parts)).hex()
