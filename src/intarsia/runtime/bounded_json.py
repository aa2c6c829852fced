"""Parse untrusted JSON in bounded memory."""

from __future__ import annotations

from typing import Final

from intarsia.support.errors import ArtifactError
from intarsia.support.json_text import parse_json_text

MOST_BYTES: Final = 1 << 26
"""Size limit in bytes: the manifest of a model with 10,000 kernels has about 10 MiB."""
MOST_VALUES: Final = 1 << 22
"""Limit of values: each takes up to about 100 bytes as a Python object, however short its text is."""


def parse_json(data: bytes, what: str) -> object:
    """Parse JSON, refusing what would take more than a few hundred megabytes.

    Args:
        data: The text in UTF-8.
        what: Name of the text, for errors.

    Raises:
        ArtifactError: It is too large, or no JSON.
    """
    if len(data) > MOST_BYTES:
        raise ArtifactError(f"{what} has {len(data)} bytes, expected at most {MOST_BYTES}")
    # Each value but the first of a list or object has a comma before it: an upper bound without parsing.
    values = sum(data.count(sign) for sign in (b",", b"[", b"{"))
    if values > MOST_VALUES:
        raise ArtifactError(f"{what} has about {values} values, expected at most {MOST_VALUES}")
    try:
        value: object = parse_json_text(data)
    except ValueError as error:
        raise ArtifactError(f"{what} is not JSON") from error
    return value
