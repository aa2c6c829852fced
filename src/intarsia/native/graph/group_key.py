"""Keys of fusion groups, by which decisions refer to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.support.digest import digest_text

KEY_DIGITS: Final = 12
"""Number of hexadecimal digits of a key: 48 bits, for some hundred groups of a program."""


def group_key(steps: Sequence[KernelStep], values: Sequence[RegionValue]) -> str:
    """Return a digest of a group's operators, attributes, types and connections.

    It ignores names, positions in the region and elements of constants, so that equal layers have one key, in
    every process. It is the key of the group before any decision on layouts.

    Args:
        steps: Steps in order.
        values: Values of the region.
    """
    names: dict[int, str] = {}
    parts: list[str] = []
    for step in steps:
        parts += [str(step.op), *(f"{key}={value!r}" for key, value in sorted(step.call.attrs.items()))]
        for arg in step.args:
            if arg is not None and arg not in names:
                is_constant = values[arg].constant is not None
                names[arg] = f"{'c' if is_constant else 'x'}{len(names)} {values[arg].type}"
        parts += ["read", *("-" if arg is None else names[arg] for arg in step.args)]
        for number in step.outputs:
            names[number] = f"s{len(names)} {values[number].type}"
        parts += ["write", *(names[number] for number in step.outputs)]
    return digest_text(parts)[:KEY_DIGITS]
