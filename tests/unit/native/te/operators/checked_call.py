"""One call of an operator by its compute rule, against the reference or against given values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.te_cases import Tensors
from tests.te_evaluator import evaluate
from tests.unit.native.te.operators.node_cases import interpreted

from intarsia.ir import Call, Constant, Expr
from intarsia.measure.judge.compare_outputs import compare
from intarsia.measure.judge.tolerance import tolerance_for
from intarsia.native.te.operators import ComputeCall, compute, compute_call_of
from intarsia.op import absent
from intarsia.op import call as op_call
from intarsia.op.constant_argument import constant_arguments
from intarsia.op.evaluate import evaluate_call

Array = npt.NDArray[Any]


def make_call(name: str, *args: Array | None, outputs: Any = 1, **attrs: Any) -> Call:
    """A typed call on constants; None for an argument left out."""
    given: list[Expr] = [absent() if arg is None else _constant(arg) for arg in args]
    return op_call(name, *given, outputs=outputs, **attrs)


def described(call: Call) -> ComputeCall:
    """A call for its rule, which knows the values of arguments that say what the result looks like only."""
    found = compute_call_of(call)
    known = constant_arguments(call)
    constants = tuple(value if position in known else None for position, value in enumerate(found.constants))
    return replace(found, constants=constants)


def check(
    call: Call,
    expected: Sequence[Array] | None = None,
    length: int = 1,
    *,
    knows: bool = False,
    summand: float = 0.0,
) -> None:
    """The rule's results are the expected ones, both evaluated at once and lowered and interpreted.

    Args:
        call: Call on constants.
        expected: Expected results; default: those of the reference.
        length: Length of the longest sum on the way, for the tolerance.
        knows: Whether the rule knows the values of all arguments.
        summand: The largest number of a sum, of which results may be small remainders.
    """
    wanted = reference(call) if expected is None else list(expected)
    rule_call = compute_call_of(call) if knows else described(call)
    feeds = {
        f"{rule_call.name}.x{position}": arg.data
        for position, arg in enumerate(call.args)
        if isinstance(arg, Constant)
    }
    tensors = Tensors(compute(rule_call), feeds)
    names = [f"result {position}" for position in range(len(wanted))]
    tolerances = [tolerance_for(each.dtype, max(length, 1), depth=4) for each in wanted]
    tolerances = [replace(each, atol=each.atol + each.atol_scale * summand) for each in tolerances]
    for found in (evaluate(tensors.outputs, feeds), interpreted(tensors)):
        report = compare(found, wanted, names, tolerances)
        assert report.passed, report.message


def reference(call: Call) -> list[Array]:
    """What the reference toolchain makes of a call."""
    value = evaluate_call(call)
    return list(value) if isinstance(value, tuple) else [value]


def _constant(array: Array) -> Constant:
    value = np.array(array)
    value.flags.writeable = False
    return Constant(value)


__all__ = ["Array", "check", "described", "make_call", "reference"]
