"""SimplifyExpr: every rule alone, and what the rules must not do."""

from __future__ import annotations

import numpy as np
import pytest
from tests.each_case import each_case
from tests.pass_checks import assert_facts_kept, assert_same_results, checked, operator_counts
from tests.unit.passes.simplify_cases import CASES, Case, f
from tests.unit.passes.simplify_kept_cases import KEPT

import intarsia as ia
from intarsia.ir import (
    Constant,
    Expr,
    Function,
    IRModule,
    TensorType,
    Type,
    Var,
    structural_equal,
    with_fields,
)
from intarsia.ir import SymbolicDim as Symbol
from intarsia.op import call, infer_types, verify
from intarsia.passes import SimplifyExpr
from intarsia.passes.simplify_expr import REASSOCIATION_RULES, RULES
from intarsia.target import DeviceType, VirtualDevice

SIMPLIFY = SimplifyExpr()
OUTSIDE_THE_TABLES = {"part_of_one", "tuple_field"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rule_simplifies(case: Case) -> None:
    before = case.program(case.before)
    after = SIMPLIFY(before)
    expected = case.program(case.after)
    assert structural_equal(after, expected), f"expected\n{expected}\nfound\n{after}"
    verify(after)
    assert SIMPLIFY(after) is after
    _agree(before, after)


@each_case("case", KEPT)
def test_a_rule_stays_away(case: Case) -> None:
    before = case.program(case.before)
    assert SIMPLIFY(before) is before


def test_every_rule_is_shown() -> None:
    tables = (*RULES.values(), *REASSOCIATION_RULES.values())
    rules = {rule.__name__ for table in tables for rule in table}
    assert {case.rule for case in CASES} == rules | OUTSIDE_THE_TABLES


def _agree(before: IRModule, after: IRModule) -> None:
    """Same results for values with signs, on sizes that stand for the symbolic ones."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        inputs = {param.name: _value(rng, param.checked_type) for param in before["main"].params}
        assert_same_results(before, after, inputs)


def _value(rng: np.random.Generator, type_: Type | None) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    assert isinstance(type_, TensorType)
    assert type_.shape is not None
    sizes = {"N": 2, "M": 3, "A": 5, "B": 4, "?": 3}
    shape = tuple(sizes[dim.name] if isinstance(dim, Symbol) else dim for dim in type_.shape)
    return np.asarray(rng.integers(-4, 5, shape) * 0.75).astype(type_.dtype.numpy)


def vector(name: str = "x") -> Var:
    return Var(name, checked_type=TensorType((3,), "float32"))  # type: ignore[arg-type]  # takes the spelling


def program(body: Expr, *params: Var) -> IRModule:
    return infer_types(IRModule.from_expr(Function(params, body)))


def test_reassociation_can_be_turned_off() -> None:
    x = vector()
    mod = program(call("Add", call("Add", x, Constant(f(1))), Constant(f(2))), x)
    assert operator_counts(SIMPLIFY(mod)) == {"Add": 1}
    assert SimplifyExpr(reassociate=False)(mod) is mod


def test_zero_is_dropped_although_it_would_turn_the_sign_of_zero() -> None:
    x = vector()
    mod = program(call("Add", x, Constant(f(0))), x)
    minus_zero = f(-0.0, 1, 2)
    before, after = (np.asarray(ia.build(item)(minus_zero)) for item in (mod, SIMPLIFY(mod)))
    assert not np.signbit(before[0])
    assert np.signbit(after[0])
    np.testing.assert_array_equal(before, after)


def test_infinities_and_nan_pass_through_as_before() -> None:
    x = vector()
    body = call(
        "Clip", call("Clip", call("Mul", call("Mul", x, Constant(f(3))), Constant(f(0))), Constant(f(-2)))
    )
    mod = program(body, x)
    special = f(np.inf, np.nan, -np.inf)
    before, after = (np.asarray(ia.build(item)(special)) for item in (mod, SIMPLIFY(mod)))
    np.testing.assert_array_equal(before, after)


def test_unknown_shapes_are_left_alone() -> None:
    x = Var("x", checked_type=TensorType(None, "float32"))  # type: ignore[arg-type]  # takes the spelling
    body: Expr = x
    for name in ("Flatten", "Transpose", "Transpose", "GlobalAveragePool"):
        body = call(name, body)
    body = call("Add", body, Constant(f([0.0])))
    untyped = with_fields(call("Reshape", body, Constant(np.array([0, -1]))), checked_type=None)
    mod = program(untyped, x)
    after = SIMPLIFY(mod)
    assert operator_counts(after)["Transpose"] == 2
    assert operator_counts(after)["Add"] == 1


def test_a_value_does_not_move_to_another_device() -> None:
    here, there = (VirtualDevice(DeviceType.CPU, number) for number in (0, 1))
    x = with_fields(vector(), virtual_device=here)
    mod = program(with_fields(call("Add", x, Constant(f(0))), virtual_device=there), x)
    assert SIMPLIFY(mod) is mod


def test_facts_are_kept() -> None:
    x = vector()
    body = call("Add", call("Add", call("Neg", call("Neg", x)), Constant(f(1))), Constant(f(2)))
    assert_facts_kept(SIMPLIFY, program(body, x))


def test_long_chains_are_no_deep_recursion(length: int) -> None:
    x = vector()
    body: Expr = x
    for number in range(length):
        body = call("Add", body, Constant(f(1))) if number % 3 else call("Neg", body)
    after = SIMPLIFY(program(body, x))
    assert operator_counts(after)["Add"] < 0.7 * length


def test_an_unshared_chain_of_all_kinds_collapses() -> None:
    case = Case("", "Transpose(Neg(Neg(Reshape(Transpose(Transpose(%x)), $0))))", "", (np.array([2, 3]),))
    after = checked(SIMPLIFY, case.program(case.before))
    assert operator_counts(after) == {"Transpose": 1}
