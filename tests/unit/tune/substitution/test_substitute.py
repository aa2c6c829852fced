"""Where rules are applied, what they keep, and what they stay away from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.pass_checks import DEVICE, SPAN, assert_same_results, planned
from tests.substitution_examples import EVERY_RULE, places

from intarsia.ir import Constant, Expr, Function, GlobalVar, IRModule, Op, TensorType, Var, post_order
from intarsia.ir import with_fields as changed
from intarsia.ir.parser import parse_module
from intarsia.op import call, infer_types
from intarsia.passes import PartitionWhole
from intarsia.support.errors import UsageError
from intarsia.target import DeviceType, VirtualDevice
from intarsia.tune.substitution import RULES, Dataflow, find_substitutions, match_at, substitute, substitution


def program(text: str, *constants: np.ndarray[Any, Any]) -> IRModule:
    return infer_types(parse_module(text, constants))


SHAPES = {"x": (2, 3), "w": (3, 2)}
NESTED = "def @main(%x: Tensor[(2, 3), float32]) { Relu(Transpose(Transpose(%x))) }"


def test_places_count_compound_expressions_only() -> None:
    flow = Dataflow.of(program(NESTED))
    assert [str(each.op) for each in flow.expressions if hasattr(each, "op")] == [
        "Transpose",
        "Transpose",
        "Relu",
    ]
    found = find_substitutions(flow, [RULES["merge_transposes"], RULES["elementwise_before_transpose"]])
    assert [(each.rule, each.positions) for each in found] == [
        ("merge_transposes", (1,)),
        ("elementwise_before_transpose", (2,)),
    ]


def test_types_that_are_missing_are_inferred() -> None:
    untyped = parse_module(NESTED)
    after = substitute(untyped, "merge_transposes", [1])
    assert "Transpose" not in str(after)
    assert after["main"].result_type == program(NESTED)["main"].result_type


@pytest.mark.parametrize("place", [[0], [2], [99], [-1], [], [1, 1]])
def test_a_rule_that_does_not_match_there_is_refused(place: list[int]) -> None:
    with pytest.raises(UsageError, match="rule merge_transposes does not match at"):
        substitute(program(NESTED), "merge_transposes", place)
    with pytest.raises(UsageError, match="unknown substitution rule"):
        substitute(program(NESTED), "no_such_rule", place)


def test_branches_are_rewritten_each_for_itself() -> None:
    mod = program("""
    def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(3, 2), float32], %c: Tensor[(), bool]) {
      if (%c) { MatMul(%x, %w) } else { Neg(Sub(MatMul(%x, Neg(%w)), Exp(MatMul(%x, %w)))) }
    }
    """)
    (pair,) = places(RULES["merge_parallel_products"], mod)  # of the three, two are evaluated together
    assert str(substitute(mod, pair.rule, pair.positions)).count("MatMul") == 2
    (found,) = places(RULES["negated_difference"], mod)
    after = substitute(mod, found.rule, found.positions)
    assert str(after).count("Neg(") == str(mod).count("Neg(") - 1
    for flag in (True, False):
        rng = np.random.default_rng(0)
        values = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}
        assert_same_results(mod, after, {**values, "c": np.array(flag)})


def test_products_that_depend_on_each_other_are_not_merged() -> None:
    mod = program("""
    def @main(%x: Tensor[(3, 3), float32]) { MatMul(%x, MatMul(%x, %x)) }
    """)
    assert places(RULES["merge_parallel_products"], mod) == []
    assert places(RULES["merge_products_of_one_operand"], mod) == []


def test_every_pair_of_three_products_can_be_merged() -> None:
    weights = [np.ones((3, size), np.float32) for size in (1, 2, 3)]
    mod = program(
        """
        def @main(%x: Tensor[(2, 3), float32]) {
          (MatMul(%x, meta[Constant][0]), MatMul(%x, meta[Constant][1]), MatMul(%x, meta[Constant][2]))
        }
        """,
        *weights,
    )
    found = places(RULES["merge_parallel_products"], mod)
    assert [each.positions for each in found] == [(0, 1), (0, 2), (1, 2)]
    for each in found:
        after = substitute(mod, each.rule, each.positions)
        assert str(after).count("MatMul") == 2
        assert_same_results(mod, after)


def test_what_is_compiled_on_its_own_stays() -> None:
    mod = PartitionWhole("cpu -toolchain=onnxruntime")(program(NESTED))
    assert list(find_substitutions(Dataflow.of(mod), EVERY_RULE)) == []
    inside = program("""
    def @main(%x: Tensor[(2, 3), float32]) {
      %f = fn (%y: Tensor[(2, 3), float32]) { Transpose(Transpose(%y)) };
      %f(%x)
    }
    """)
    assert [each.rule for each in places(RULES["merge_transposes"], inside)] == ["merge_transposes"]
    marked = inside.with_function("main", _marked(inside["main"]))
    assert places(RULES["merge_transposes"], marked) == []


def _marked(main: Function) -> Function:
    from intarsia.ir import Attrs
    from intarsia.ir.traversal import rewrite

    def rule(expr: Expr) -> Expr:
        is_inner = isinstance(expr, Function) and expr.params != main.params
        return changed(expr, attrs=Attrs({"Primitive": 1})) if is_inner else expr

    found = rewrite(main, rule)
    assert isinstance(found, Function)
    return found


def test_spans_and_devices_are_kept() -> None:
    after = substitute(planned(program(NESTED)), "elementwise_before_transpose", [2])
    for node in post_order(after["main"]):
        if not isinstance(node, (Op, GlobalVar)):
            assert node.span == SPAN
            assert node.virtual_device == DEVICE


def test_what_lives_on_several_devices_stays() -> None:
    x = Var("x", checked_type=TensorType((2, 3), "float32"))  # type: ignore[arg-type]  # takes the spelling
    inner = changed(call("Transpose", x), virtual_device=VirtualDevice(DeviceType.CPU, 1))
    mod = infer_types(IRModule.from_expr(Function((x,), call("Transpose", inner))))
    assert places(RULES["merge_transposes"], mod) == []


def test_a_substitution_that_would_change_a_type_is_none() -> None:
    mod = program(
        """
    def @main(%a: Tensor[(2, 3), float32], %b: Tensor[(3,), float32]) {
      MatMul(Mul(%a, meta[Constant][0]), %b)
    }
    """,
        np.ones(1, np.float32),
    )
    assert places(RULES["scale_left_operand_later"], mod) != []
    vector = program(
        """
    def @main(%a: Tensor[(3,), float32], %b: Tensor[(3,), float32]) {
      MatMul(Mul(%a, meta[Constant][0]), %b)
    }
    """,
        np.ones(1, np.float32),
    )
    assert places(RULES["scale_left_operand_later"], vector) == []  # the number would have become a vector


def test_what_constants_decide_is_computed_at_once() -> None:
    mod = program(
        "def @main(%a: Tensor[(N, 2), float32]) { MatMul(MatMul(%a, meta[Constant][0]), meta[Constant][1]) }",
        np.array([[1, 2], [3, 4]], np.float32),
        np.array([[1], [1]], np.float32),
    )
    flow = Dataflow.of(mod)
    (found,) = find_substitutions(flow, [RULES["associate_matmul_right"]])
    (new,) = found.new
    (weight,) = [each for each in post_order(new) if isinstance(each, Constant)]
    np.testing.assert_array_equal(weight.data, [[3], [7]])


def test_a_match_names_its_parts() -> None:
    flow = Dataflow.of(program(NESTED))
    found = match_at(RULES["merge_transposes"], (1,), flow)
    assert found is not None
    assert isinstance(found.names["a"], Var)
    assert found.roots == (flow.expressions[1],)


def test_a_rule_must_show_what_it_does() -> None:
    def shy(a: Expr) -> Expr:
        """Nothing to see."""
        return a

    with pytest.raises(UsageError, match="rule shy has no Before and After"):
        substitution()(shy)
