"""The option of NumPy's targets. Parsing a target imports this module: it must not import the toolchain."""

from __future__ import annotations

from typing import Final

from intarsia.target import TargetOption

REUSE_BUFFERS: Final = TargetOption(
    "reuse_buffers",
    bool,
    "whether elementwise operators write into operands that nothing reads afterwards",
    toolchains=("numpy",),
    default=True,
)
"""The option changes speed and memory, not results, so that the pass TuneFlags tunes it."""
