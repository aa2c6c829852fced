"""A rule that raises on an expression becomes an error that names the expression's node."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.onnx_models import model_of

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, Expr
from intarsia.ir.rule_errors import NamedFailure
from intarsia.op import rewrite_typed
from intarsia.op.let_types import rewrite_with_lets
from intarsia.passes import partition_whole
from intarsia.support.errors import CompileError, UnsupportedModelError, UsageError
from intarsia.target import Target

MODEL = model_of("g (float[2] x) => (float[2] y) { a = Neg(x)  [loud] y = Relu(a) }")


def failing(expr: Expr) -> Expr:
    if isinstance(expr, Call) and str(expr.op) == "Relu":
        return expr.args[len(expr.args)]
    return expr


@pytest.mark.parametrize(
    ("rewrite", "doing"),
    [
        (lambda: rewrite_typed(from_onnx(MODEL)["main"], failing), "rewritten"),
        (lambda: rewrite_with_lets(from_onnx(MODEL)["main"], failing), "typed"),
    ],
)
def test_a_foreign_exception_names_the_node(rewrite: Callable[[], object], doing: str) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        rewrite()
    expected = f"operator 'Relu' at node 'loud' cannot be {doing}: IndexError: tuple index out of range"
    assert caught.value.problem == expected
    assert isinstance(caught.value.__cause__, IndexError)


@pytest.mark.parametrize("error", [UsageError("no"), MemoryError(), RecursionError()])
def test_errors_for_people_and_of_the_machine_stay(error: Exception) -> None:
    with pytest.raises(type(error)), NamedFailure(from_onnx(MODEL)["main"].body, "rewritten"):
        raise error


def test_a_compute_rule_that_raises_does_not_cover() -> None:
    """An axis that the tensor lacks: onnx infers a type all the same."""
    from intarsia.native.te.operators import reason_not_covered

    model = model_of("g (float[2,3] x) => (y) { y = LpNormalization <axis = 9> (x) }", opset=22)
    body = from_onnx(model)["main"].body
    assert isinstance(body, Call)
    reason = reason_not_covered(body)
    assert reason is not None
    assert "these attributes and shapes (IndexError" in reason


def test_an_error_for_people_gets_the_node_once() -> None:
    body = from_onnx(MODEL)["main"].body
    with pytest.raises(UsageError) as caught, NamedFailure(body, "typed"), NamedFailure(body, "rewritten"):
        raise UsageError("no")
    assert str(caught.value) == "no\n  at node 'loud' (Relu)"


def test_a_refusal_of_native_names_the_node() -> None:
    model = model_of("g (float[2,3] x) => (y) { [deep] y = LpNormalization <axis = 9> (x) }", opset=22)
    with pytest.raises(CompileError, match=r"at node 'deep' \(LpNormalization\)"):
        build(partition_whole(from_onnx(model), Target("cpu -toolchain=native")))
