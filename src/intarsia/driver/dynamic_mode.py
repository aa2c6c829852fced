"""When programs with symbolic dimensions are specialized for sizes."""

from __future__ import annotations

from enum import StrEnum

from intarsia.support.errors import UsageError


class DynamicMode(StrEnum):
    """When programs are specialized for sizes of symbolic dimensions."""

    EAGER = "eager"
    """While tuning: the artifact has variants for the sizes that the user names."""
    NONE = "none"


def read_dynamic(text: str) -> DynamicMode:
    """Read a mode from its name.

    Raises:
        UsageError: There is no such mode.
    """
    try:
        return DynamicMode(text)
    except ValueError:
        names = " or ".join(repr(mode.value) for mode in DynamicMode)
        raise UsageError(f"dynamic is {text!r}, expected {names}") from None
