"""Folders of a user's data and caches, by the XDG base directory specification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_NAME = "intarsia"


def data_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of what took time to measure: `~/.local/share/intarsia` unless XDG_DATA_HOME is set.

    Args:
        environment: Variables of the environment.
    """
    return _folder(environment, "XDG_DATA_HOME", Path(".local", "share"))


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of what can be computed again: `~/.cache/intarsia` unless XDG_CACHE_HOME is set.

    Args:
        environment: Variables of the environment.
    """
    return _folder(environment, "XDG_CACHE_HOME", Path(".cache"))


def _folder(environment: Mapping[str, str], variable: str, default: Path) -> Path:
    folder = Path(environment.get(variable, ""))
    if not folder.is_absolute():  # the specification says to ignore a relative one
        folder = Path.home() / default
    return folder / _NAME
