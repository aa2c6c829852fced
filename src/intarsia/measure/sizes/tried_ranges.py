"""The hint for a program that fails at sizes that were assumed."""

from __future__ import annotations

import shlex

from intarsia.ir import IRModule, dim_ranges


def tried_ranges_text(mod: IRModule) -> str:
    """Return a hint with the ranges of a program's open dimensions; "" if it has none."""
    ranges = dim_ranges(mod["main"])
    if not ranges:
        return ""
    tried = ", ".join(f"{name}={item.low}..{item.high}" for name, item in ranges.items())
    name = shlex.quote(next(iter(ranges)))
    return (
        f"it was tried with {tried}; if the model needs other sizes, give them: "
        f"--shape {name}=LOW..HIGH, or dims={{...}} in Python"
    )
