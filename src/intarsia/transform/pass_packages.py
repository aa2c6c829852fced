"""Installed packages that bring passes, pipelines and options of contexts."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Final

ENTRY_POINTS: Final = "intarsia.passes"
"""Entry points of this group name modules; importing one registers its passes and pipelines."""


_OURS: Final = "intarsia."


def load_own_passes() -> None:
    """Import our own modules that announce passes: unlike other packages, these surely start no thread."""
    for point in entry_points(group=ENTRY_POINTS):
        if point.value.startswith(_OURS):
            point.load()


@cache
def load_pass_packages() -> tuple[str, ...]:
    """Import every installed package that announces passes, once; returns those that fail, and why.

    Ours come first, so that a package that takes one of their names is the one that fails.
    """
    broken = []
    points = entry_points(group=ENTRY_POINTS)
    for point in sorted(points, key=lambda point: (not point.value.startswith(_OURS), point.value)):
        try:
            point.load()
        except Exception as error:  # a broken package must not take the others down
            broken.append(f"{point.value}: {error}")
    return tuple(broken)
