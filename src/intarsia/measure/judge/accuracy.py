"""Error bounds that a user sets for a program, beyond the rounding errors of its types.

The bound is an attribute of the module, and part of its text and digest. So it stays with the program
wherever
it is built and checked, and no other program is judged by it.
"""

from __future__ import annotations

import math
from io import StringIO
from itertools import takewhile
from typing import Final

from intarsia.ir import IRModule, with_module_fields
from intarsia.ir.parser import parse_module
from intarsia.measure.judge.gate import Gate
from intarsia.support.errors import UsageError

_ATTRIBUTE: Final = "error_bound"


def with_error_bound(mod: IRModule, bound: float) -> IRModule:
    """Return the program with a bound for floating-point errors, as a fraction of the norm of each output.

    If it has a bound already, the smaller one holds.

    Raises:
        UsageError: It is no positive number.
    """
    if not (bound > 0 and math.isfinite(bound)):
        raise UsageError(
            f"the error bound is {bound}; expected a positive number",
            help="0.01 allows errors of a hundredth of the norm of an output",
        )
    current = error_bound(mod)
    least = bound if current is None else min(bound, current)
    return with_module_fields(mod, attrs=mod.attrs.updated(**{_ATTRIBUTE: float(least)}))


def error_bound(mod: IRModule) -> float | None:
    """Return the error bound of a program; None for the accuracy of its types."""
    value = mod.attrs.get(_ATTRIBUTE)
    return float(value) if isinstance(value, int | float) else None


def error_bound_of_text(text: str) -> float | None:
    """Return the error bound of a program's text, of which only the head is parsed."""
    head = "".join(takewhile(lambda line: line.startswith("#["), StringIO(text)))
    return error_bound(parse_module(head)) if _ATTRIBUTE in head else None


def bounded(gate: Gate, bound: float | None) -> Gate:
    """Return a gate for the results of a program with a bound; the gate itself without a bound.

    Integers, truth values and texts must still be equal.
    """
    return gate if bound is None else gate.loosened(bound)
