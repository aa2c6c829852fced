"""The two forms of an artifact, its version, and the names of its files."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

FORMAT_VERSION: Final = 1
"""Version of the manifest; increased whenever older software could misread an artifact."""
DEVICES_VERSION: Final = 2
"""Manifest version of executables with several devices, which software of version 1 would misread."""
FORMAT_NAME: Final = "intarsia-artifact"

MANIFEST: Final = "manifest.json"
PROGRAM: Final = "program.txt"
CONSTANTS: Final = "constants.safetensors"
SELF_TEST: Final = "selftest.safetensors"
EXPLANATION: Final = "explanation.json"
"""Explanation of the build for `intarsia explain`; an optional file."""
SIGNATURE: Final = "signature.json"
"""Signature of the manifest, which therefore does not list this file; an optional file."""


class ArtifactFormat(StrEnum):
    """Storage form of an artifact: one zip file or a folder."""

    ZIP = "zip"
    DIRECTORY = "directory"


def source_file(index: int, toolchain: str) -> str:
    """Return the file name of the ONNX model that a kernel is compiled from."""
    return f"kernels/{index:02d}_{toolchain}.onnx"


def blob_file(index: int) -> str:
    """Return the file name of a kernel's compiled form."""
    return f"kernels/{index:02d}.blob"
