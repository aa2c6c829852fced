"""Error bounds that a user sets for a program, beyond the rounding errors of its types.

The bound is an attribute of the module, and part of its text and digest. So it stays with the program
wherever
it is built and checked, and no other program is judged by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import StringIO
from itertools import takewhile
from typing import Final

from intarsia.ir import IRModule, with_module_fields
from intarsia.ir.parser import parse_module
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.trials import Trial
from intarsia.support.errors import UsageError

_ATTRIBUTE: Final = "error_bound"
_CALIBRATED: Final = "calibrated"


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


def as_calibrated(mod: IRModule) -> IRModule:
    """Return a program that is right for inputs like those it was calibrated on only: others are clipped."""
    return with_module_fields(mod, attrs=mod.attrs.updated(**{_CALIBRATED: True}))


def judged_trials(trials: Sequence[Trial], program: IRModule) -> list[Trial]:
    """Return the input sets that a program is judged by, with its error bound if it has one.

    A calibrated program is judged by the first set alone: the user's, or else ordinary numbers. Sets with
    outliers of a thousand show faults of engines, but are nothing that the program was calibrated for.

    Args:
        trials: Input sets of the workload.
        program: The program, or a program of the same attributes.
    """
    bound = error_bound(program)
    kept = trials[:1] if program.attrs.get(_CALIBRATED) is True else trials
    return [trial.loosened(bound) for trial in kept]


def head_of_text(text: str) -> IRModule:
    """Return a program with the attributes of a program's text, of which only the head is parsed."""
    head = "".join(takewhile(lambda line: line.startswith("#["), StringIO(text)))
    return parse_module(head) if _ATTRIBUTE in head or _CALIBRATED in head else IRModule({})


def bounded(gate: Gate, bound: float | None) -> Gate:
    """Return a gate for the results of a program with a bound; the gate itself without a bound.

    Integers, truth values and texts must still be equal.
    """
    return gate if bound is None else gate.loosened(bound)
