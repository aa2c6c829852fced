"""The two forms of an artifact, its version, and the names of its files."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

FORMAT_VERSION: Final = 1
"""Of the manifest; raised whenever older software could misread an artifact."""
DEVICES_VERSION: Final = 2
"""Of the manifest of an executable with several devices, which software of version 1 would misread."""
FORMAT_NAME: Final = "intarsia-artifact"

MANIFEST: Final = "manifest.json"
PROGRAM: Final = "program.txt"
CONSTANTS: Final = "constants.safetensors"
SELF_TEST: Final = "selftest.safetensors"
EXPLANATION: Final = "explanation.json"
"""Why the program is built as it is; not every artifact has one."""
SIGNATURE: Final = "signature.json"
"""Signature of the manifest, which therefore does not list it; not every artifact has one."""


class ArtifactFormat(StrEnum):
    """How an artifact is stored."""

    ZIP = "zip"
    DIRECTORY = "directory"


def source_file(index: int, toolchain: str) -> str:
    """Name of the model that a kernel is compiled from."""
    return f"kernels/{index:02d}_{toolchain}.onnx"


def blob_file(index: int) -> str:
    """Name of a kernel's compiled form."""
    return f"kernels/{index:02d}.blob"
