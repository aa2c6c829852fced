"""Random programs, built and run, against a naive evaluator."""

from collections.abc import Iterator
from itertools import count

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.numpy_toolchain import NumpyToolchain
from tests.small_programs import FLAG, VECTOR, X, applied, checked, marked, vector

from intarsia.ir import Constant, Expr, Function, GlobalVar, If, IRModule, Let, Tuple, TupleGetItem, Var
from intarsia.op import call
from intarsia.runtime.kernel import TOOLCHAINS

pytestmark = pytest.mark.usefixtures("numpy_toolchain")

KINDS = ("operator", "constant", "field", "branch", "let", "literal", "engine", "global_call")


@pytest.fixture(autouse=True)
def _numpy_is_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLCHAINS._values, "reference", NumpyToolchain)


class Drawn:
    """Draws expressions over vectors, each from values that are in scope."""

    def __init__(self, draw: st.DrawFn, flag: Var) -> None:
        self._draw, self._flag = draw, flag
        self._numbers: Iterator[int] = count()

    def vectors(self, scope: list[Expr], budget: int) -> Expr:
        pool = list(scope)
        for _ in range(self._draw(st.integers(0, budget))):
            a, b = self._draw(st.sampled_from(pool)), self._draw(st.sampled_from(pool))
            kind = self._draw(st.sampled_from(KINDS))
            pool.append(getattr(self, kind)(a, b, budget - 1))
        return self._draw(st.sampled_from(pool))

    def operator(self, a: Expr, b: Expr, budget: int) -> Expr:
        return call(self._draw(st.sampled_from(["Add", "Sub"])), a, b)

    def constant(self, a: Expr, b: Expr, budget: int) -> Expr:
        return Constant(np.full(4, next(self._numbers), np.float32))

    def field(self, a: Expr, b: Expr, budget: int) -> Expr:
        return TupleGetItem(Tuple((a, Tuple((b,)))), 0)

    def branch(self, a: Expr, b: Expr, budget: int) -> Expr:
        return If(self._flag, self.vectors([a, b], budget), self.vectors([b], budget), checked_type=VECTOR)

    def let(self, a: Expr, b: Expr, budget: int) -> Expr:
        var = vector("v")
        return Let(var, a, self.vectors([var, b], budget))

    def literal(self, a: Expr, b: Expr, budget: int) -> Expr:
        var = vector("p")
        function = Function((var,), self.vectors([var, a], budget))
        once = applied(function, b)
        return call("Add", applied(function, a), once) if self._draw(st.booleans()) else once

    def engine(self, a: Expr, b: Expr, budget: int) -> Expr:
        var = vector("m")
        return applied(marked(Function((var,), self.vectors([var], budget))), a)

    def global_call(self, a: Expr, b: Expr, budget: int) -> Expr:
        return applied(GlobalVar("helper"), a, b)


@st.composite
def programs(draw: st.DrawFn) -> IRModule:
    """Programs of two vectors and a flag."""
    x, y, flag, p, q = vector("x"), vector("y"), Var("c", checked_type=FLAG), vector("p"), vector("q")
    helper = Function((p, q), call("Sub", p, call("Mul", q, Constant(X))))
    helper = marked(helper) if draw(st.booleans()) else helper
    drawn = Drawn(draw, flag)
    result = Tuple((drawn.vectors([x, y], 3), Tuple((drawn.vectors([x, y], 3), x))))
    return IRModule({GlobalVar("main"): Function((x, y, flag), result), GlobalVar("helper"): helper})


@settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(programs(), st.booleans())
def test_random_programs_compute_what_the_naive_evaluator_computes(mod: IRModule, flag: bool) -> None:
    checked(mod, X, X * 2 + 1, np.array(flag))
