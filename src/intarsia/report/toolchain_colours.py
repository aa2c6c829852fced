"""Colours of toolchains: the same one in every picture of a report."""

from __future__ import annotations

from typing import Final

_CLASSES: Final = {
    "native": "t0",
    "openvino": "t1",
    "onnxruntime": "t2",
    "torch": "t3",
    "reference": "t4",
    "host": "t4",
}

OTHER: Final = "t5"
"""Class of toolchains outside the tree."""

NONE: Final = "t6"
"""Class of nodes without a toolchain."""


def toolchain_class(toolchain: str) -> str:
    """Return the class of CSS that has the colour of a toolchain; its variable is `--` and the class."""
    return _CLASSES.get(toolchain, OTHER) if toolchain else NONE
