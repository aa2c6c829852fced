"""The option of PyTorch's targets, announced by an entry point `intarsia.target_options`."""

from __future__ import annotations

from typing import Final

from intarsia.target import TargetOption

COMPILED: Final = TargetOption(
    "compiled",
    bool,
    "whether torch.compile makes one program of the operators; it needs a minute and a C++ compiler",
    toolchains=("torch",),
    default=False,
    is_tuned=False,
)
"""No pass decides on it: compiling takes longer than most tuning runs."""
