"""The operators that the toolchain torch covers."""

from __future__ import annotations

from collections.abc import Mapping

from intarsia.toolchain.torch.arithmetic import ARITHMETIC
from intarsia.toolchain.torch.networks import NETWORKS
from intarsia.toolchain.torch.recurrent import RECURRENT
from intarsia.toolchain.torch.rule import Rule
from intarsia.toolchain.torch.shapes import FIXED_INPUTS, SHAPES

__all__ = ["FIXED_INPUTS", "OPERATORS"]

OPERATORS: Mapping[str, Rule] = {**ARITHMETIC, **NETWORKS, **RECURRENT, **SHAPES}
"""Rules by name of the operator."""
