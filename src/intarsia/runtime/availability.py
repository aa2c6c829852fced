"""Whether a toolchain can be used on this machine, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Available:
    """The toolchain works on this machine."""

    version: str


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The toolchain does not work on this machine, and why (not installed, broken import, wrong CPU)."""

    reason: str
    help: str = ""
