"""Calls of operators through their compute rules, compared with onnx's reference implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.te_evaluator import evaluate

from intarsia.ir import AttrValue, Call, Constant, Expr, GlobalVar, IRModule, Op, TensorType, Var
from intarsia.ir.verify import verify
from intarsia.native import te
from intarsia.native.lowering import lower_naive
from intarsia.native.te.operators import compute, compute_call_of
from intarsia.native.tir.interpret import interpret
from intarsia.op import absent, call
from intarsia.op.evaluate import evaluate_call
from intarsia.op.operator_table import facts_of

Array = npt.NDArray[Any]

_MOST_INTERPRETED = 600
"""Elements of results; the interpreter takes microseconds for each operation."""


def check(
    name: str,
    *args: Array | None,
    domain: str = "",
    outputs: int = 1,
    expected: Sequence[Array] | None = None,
    tolerance: float = 0.0,
    **attrs: AttrValue,
) -> None:
    """Assert that an operator's rule computes what the reference does, evaluated and lowered.

    Args:
        name: Operator.
        args: Its arguments; those that say what the result looks like are constants.
        domain: Domain of the operator.
        outputs: Number of results.
        expected: Right results where the reference is wrong.
        tolerance: Absolute, and relative to the expected value.
        attrs: Its attributes.
    """
    typed = rule_call(name, args, domain, outputs, **attrs)
    described = compute_call_of(typed, "t")
    tensors = compute(described)
    feeds = {f"t.x{i}": arg for i, arg in enumerate(args) if arg is not None}
    wanted = expected if expected is not None else reference(name, args, domain, outputs, **attrs)
    _compare(evaluate(tensors, feeds), wanted, tolerance)
    if sum(each.size for each in wanted) <= _MOST_INTERPRETED:
        _compare(_interpreted(tensors, feeds), wanted, tolerance)


def rule_call(
    name: str, args: Sequence[Array | None], domain: str = "", outputs: int = 1, **attrs: AttrValue
) -> Call:
    """A typed call whose arguments are variables, but for those that say what the result looks like."""
    fixed = facts_of(Op(name, domain)).constant_arguments
    exprs = [_argument(arg, f"x{i}", i in fixed) for i, arg in enumerate(args)]
    return call(name, *exprs, domain=domain, outputs=outputs, span=None, **attrs)


def reference(
    name: str, args: Sequence[Array | None], domain: str = "", outputs: int = 1, **attrs: AttrValue
) -> tuple[Array, ...]:
    """What onnx's reference implementation computes."""
    exprs = [_argument(arg, "", True) for arg in args]
    found = evaluate_call(call(name, *exprs, domain=domain, outputs=outputs, span=None, **attrs))
    return found if isinstance(found, tuple) else (found,)


def _argument(value: Array | None, name: str, is_constant: bool) -> Expr:
    if value is None:
        return absent()
    return Constant(value) if is_constant else Var(name, checked_type=TensorType.of(value))


def _interpreted(tensors: Sequence[te.Tensor], feeds: dict[str, Array]) -> list[Array]:
    function = lower_naive(tensors)
    verify(IRModule({GlobalVar("main"): function}))
    results = {tensor.buffer.name: np.zeros(tensor.shape, tensor.dtype.numpy) for tensor in tensors}
    given = {
        name: value for name, value in feeds.items() if name in {param.name for param in function.params}
    }
    interpret(function, {**given, **results})
    return list(results.values())


def _compare(found: Sequence[Array], wanted: Sequence[Array], tolerance: float) -> None:
    assert [(each.shape, each.dtype) for each in found] == [(each.shape, each.dtype) for each in wanted]
    for one, other in zip(found, wanted, strict=True):
        if one.dtype.kind in "biu":
            np.testing.assert_array_equal(one, other)
            continue
        wide, exact = one.astype(np.float64), other.astype(np.float64)
        np.testing.assert_allclose(wide, exact, rtol=tolerance, atol=tolerance)
        if tolerance == 0:
            is_number = ~np.isnan(exact)
            np.testing.assert_array_equal(np.signbit(wide[is_number]), np.signbit(exact[is_number]))
