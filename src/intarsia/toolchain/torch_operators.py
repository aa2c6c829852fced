"""The operators that the toolchain torch covers."""

from __future__ import annotations

from collections.abc import Mapping

from intarsia.toolchain.torch_arithmetic import ARITHMETIC
from intarsia.toolchain.torch_networks import NETWORKS
from intarsia.toolchain.torch_recurrent import RECURRENT
from intarsia.toolchain.torch_rule import Rule
from intarsia.toolchain.torch_shapes import FIXED_INPUTS, SHAPES

__all__ = ["FIXED_INPUTS", "OPERATORS"]

OPERATORS: Mapping[str, Rule] = {**ARITHMETIC, **NETWORKS, **RECURRENT, **SHAPES}
"""Rules by name of the operator."""
