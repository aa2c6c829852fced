"""The options of PyTorch's targets, announced by an entry point `intarsia.target_options`."""

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

MAX_AUTOTUNE: Final = TargetOption(
    "max_autotune",
    bool,
    "whether torch.compile chooses by timing among several kernels for an operator; it takes minutes",
    toolchains=("torch",),
    default=False,
    is_tuned=False,
)
"""Without `compiled` it has no effect."""
