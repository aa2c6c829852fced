"""The store of registered passes; it stands below passes, so that their text can name those in it."""

from __future__ import annotations

from typing import Any, Final

from intarsia.support.registry import Registry

PASSES: Final[Registry[Any]] = Registry("pass")
"""Classes of passes, and passes without options, by name; `pass_registry` fills and reads it."""
