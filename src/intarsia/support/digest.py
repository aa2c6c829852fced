"""Digests that are the same in every process and on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

DIGEST_BYTES = 16


def digest_bytes(*parts: bytes | memoryview) -> bytes:
    """BLAKE2b of the parts, each prefixed by its length so that no two lists collide."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.digest()


def digest_text(parts: Iterable[str]) -> str:
    """Hexadecimal digest of a list of strings."""
    return digest_bytes(*(part.encode() for part in parts)).hex()
