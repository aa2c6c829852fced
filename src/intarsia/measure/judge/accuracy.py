"""Programs that are allowed to be less exact than rounding of their types explains, because the user said so.

The bound is a fact on the program: an attribute of the module, which its text and its digest have too. So it
goes with the program to wherever it is built and checked, and nobody else's results are judged by it.
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
    """A program whose floating-point results may be off by a fraction of the norm of each output.

    If it has a bound already, the smaller one holds.

    Raises:
        UsageError: It is no positive number.
    """
    if not (bound > 0 and math.isfinite(bound)):
        raise UsageError(
            f"the error bound is {bound}; expected a positive number",
            help="0.01 allows errors of a hundredth of the norm of an output",
        )
    known = error_bound(mod)
    least = bound if known is None else min(bound, known)
    return with_module_fields(mod, attrs=mod.attrs.updated(**{_ATTRIBUTE: float(least)}))


def error_bound(mod: IRModule) -> float | None:
    """The bound that a program has; None if its results are to be as exact as their types allow."""
    found = mod.attrs.get(_ATTRIBUTE)
    return float(found) if isinstance(found, int | float) else None


def error_bound_of_text(text: str) -> float | None:
    """The bound of a program by its text, of which only the head is read."""
    head = "".join(takewhile(lambda line: line.startswith("#["), StringIO(text)))
    return error_bound(parse_module(head)) if _ATTRIBUTE in head else None


def bounded(gate: Gate, bound: float | None) -> Gate:
    """A gate for the results of a program with a bound; the gate itself if there is none.

    Integers, truth values and texts must be what they were.
    """
    return gate if bound is None else gate.loosened(bound)
