"""The reference toolchain, which runs every program and which nothing has to be installed for."""

from __future__ import annotations

from typing import Final

from intarsia.target.target import Target

REFERENCE: Final = "reference"
"""Name of the toolchain."""
REFERENCE_TARGET: Final = Target.for_toolchain(REFERENCE)
"""CPU target of the toolchain, with default options."""
