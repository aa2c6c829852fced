"""What becomes one kernel, what needs none, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.unit.native.graph.run_plan import run_plan

from intarsia.ir import Function, parser
from intarsia.native.graph import RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import infer_types
from intarsia.support.errors import CompileError

pytestmark = pytest.mark.quick_tests(
    12, also=["test_what_has_no_kernel_is_refused[text3-a native region cannot have a call of a GlobalVar]"]
)

ISA = Isa.host()
IMAGE = "Tensor[(1, 16, 8, 8), float32]"


def planned(text: str, *constants: npt.NDArray[Any]) -> RegionPlan:
    """The plan of a program's main; the text refers to constants as meta[Constant][i]."""
    function = infer_types(parser.parse_module(text, constants))["main"]
    assert isinstance(function, Function)
    return plan_region(function, ISA)


def operators(plan: RegionPlan) -> list[str]:
    """The operators of each kernel."""
    return [kernel.name.rpartition("_")[0] for kernel in plan.kernels]


def test_bias_residual_and_activation_follow_a_convolution() -> None:
    plan = planned(f"""
        def @main(%x: {IMAGE}, %w: Tensor[(16, 16, 1, 1), float32], %b: Tensor[(16, 1, 1), float32]) {{
          Relu(Add(Add(Conv(%x, %w), %b), %x))
        }}
    """)
    assert operators(plan) == ["conv_add_add_relu"]
    assert plan.arena_bytes == 0
    assert plan.written_results == {plan.results[0]: 0}


def test_of_two_convolutions_the_last_one_takes_the_sum() -> None:
    plan = planned(f"""
        def @main(%x: {IMAGE}, %w: Tensor[(16, 16, 1, 1), float32], %v: Tensor[(16, 16, 1, 1), float32]) {{
          Relu(Add(Conv(%x, %w), Conv(%x, %v)))
        }}
    """)
    assert operators(plan) == ["conv", "conv_add_relu"]


def test_a_value_used_twice_inside_of_a_group_is_computed_in_it() -> None:
    plan = planned(f"""
        def @main(%x: {IMAGE}, %w: Tensor[(16, 16, 1, 1), float32]) {{
          %0 = Conv(%x, %w);
          Mul(%0, Sigmoid(%0))
        }}
    """)
    assert operators(plan) == ["conv_sigmoid_mul"]


def test_a_value_used_outside_ends_its_group() -> None:
    plan = planned(f"""
        def @main(%x: {IMAGE}, %w: Tensor[(16, 16, 1, 1), float32]) {{
          %0 = Relu(Conv(%x, %w));
          (%0, MaxPool(%0, kernel_shape=[2, 2]), Tanh(Neg(%0)))
        }}
    """)
    assert sorted(operators(plan)) == ["conv_relu", "maxpool", "neg_tanh"]


def test_what_is_stretched_is_not_computed_again_for_each_element() -> None:
    plan = planned(f"""
        def @main(%x: {IMAGE}, %s: Tensor[(1, 16, 1, 1), float32]) {{ Mul(%x, Sigmoid(%s)) }}
    """)
    assert operators(plan) == ["sigmoid", "mul"]


def test_elementwise_operators_feed_reductions_and_not_pools() -> None:
    plan = planned(f"""
        def @main(%x: {IMAGE}) {{
          (Sqrt(GlobalAveragePool(Mul(%x, %x))), MaxPool(Neg(%x), kernel_shape=[3, 3]))
        }}
    """)
    assert sorted(operators(plan)) == ["maxpool", "mul_globalaveragepool_sqrt", "neg"]


def test_a_transposition_takes_what_feeds_it_and_joins_what_reads_it() -> None:
    plan = planned(f"""
        def @main(%x: {IMAGE}, %y: {IMAGE}) {{ Add(Transpose(Neg(%x), perm=[0, 1, 3, 2]), %y) }}
    """)
    assert operators(plan) == ["neg_transpose_add"]


def test_expressions_stay_small_where_values_are_read_twice() -> None:
    lines = "\n".join(f"%{i} = Mul(%{i - 1}, %{i - 1});" for i in range(1, 20))
    plan = planned(f"def @main(%x: {IMAGE}) {{ %0 = Neg(%x);\n{lines}\n Relu(%19) }}")
    assert 3 < len(plan.kernels) < 12


def test_groups_have_a_limit() -> None:
    lines = "\n".join(f"%{i} = Sigmoid(%{i - 1});" for i in range(1, 100))
    plan = planned(f"def @main(%x: {IMAGE}) {{ %0 = Neg(%x);\n{lines}\n Relu(%99) }}")
    assert len(plan.kernels) == 3
    x = np.linspace(-1, 1, 16 * 64, dtype=np.float32).reshape(1, 16, 8, 8)
    (found,) = run_plan(plan, [x], ISA)
    np.testing.assert_allclose(found, 0.65904607, rtol=1e-5)


def test_reshapes_need_no_kernel() -> None:
    plan = planned(
        """
        def @main(%x: Tensor[(2, 8), float32]) {
          %0 = Reshape(%x, meta[Constant][0]);
          %1 = Softmax(%0);
          (Flatten(%1, axis=0), Transpose(Unsqueeze(%1, meta[Constant][1]), perm=[1, 0, 2]), %0)
        }
    """,
        np.array([4, 4]),
        np.array([0]),
    )
    assert operators(plan) == ["softmax"]
    assert [plan.root(value) for value in plan.results[:2]] == list(plan.kernels[0].outputs) * 2
    assert plan.copied_results == ((1, plan.kernels[0].outputs[0]), (2, plan.params[0]))
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    found = run_plan(plan, [x], ISA)
    assert [each.shape for each in found] == [(1, 16), (4, 1, 4), (4, 4)]
    np.testing.assert_array_equal(found[2], x.reshape(4, 4))
    np.testing.assert_array_equal(found[0].reshape(4, 4), found[1].reshape(4, 4))


def test_concat_along_outer_axes_is_written_in_place() -> None:
    plan = planned(
        """
        def @main(%x: Tensor[(1, 16, 4), float32]) {
          %0 = Concat(Neg(%x), Exp(%x), axis=1);
          MatMul(Transpose(%0, perm=[0, 2, 1]), Concat(%0, Abs(%x), axis=0))
        }
    """.replace("Concat(%0, Abs(%x), axis=0)", "Concat(%0, axis=0)")
    )
    assert "concat" not in "".join(operators(plan))
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 16, 4)
    both = np.concatenate([-x, np.exp(x)], axis=1)
    (found,) = run_plan(plan, [x], ISA)
    np.testing.assert_allclose(found, both.transpose(0, 2, 1) @ both, rtol=1e-5)


def test_concat_along_inner_axes_is_a_kernel() -> None:
    plan = planned("""
        def @main(%x: Tensor[(2, 16), float32]) { Softmax(Concat(Neg(%x), Exp(%x), axis=1)) }
    """)
    assert operators(plan) == ["neg", "exp", "concat", "softmax"]


def test_equal_kernels_share_their_dag() -> None:
    plan = planned("""
        def @main(%x: Tensor[(4, 4), float32], %w: Tensor[(4, 4), float32]) {
          Softmax(MatMul(Softmax(MatMul(%x, %w)), %w))
        }
    """)
    first, second, third, fourth = plan.kernels
    assert first.dag is third.dag
    assert first.name == third.name != second.name
    assert second.dag is fourth.dag


def test_constants_are_bound_as_they_are() -> None:
    weight = np.ones((4, 2), np.float32)
    plan = planned("def @main(%x: Tensor[(4, 4), float32]) { Exp(MatMul(%x, meta[Constant][0])) }", weight)
    (kernel,) = plan.kernels
    (bound,) = kernel.constants.values()
    assert bound is weight
    assert list(kernel.inputs.values()) == list(plan.params)


def test_kernels_that_no_result_needs_are_left_out() -> None:
    plan = planned(
        """
        def @main(%x: Tensor[(4, 4), float32]) {
          %0 = Split(%x, meta[Constant][0], outputs=2);
          %1 = (%0.0, Softmax(%x));
          Neg(%1.0)
        }
    """,
        np.array([2, 2]),
    )
    assert operators(plan) == ["split", "neg"]


def test_composite_functions_in_place_and_lets_are_read_through() -> None:
    plan = planned("""
        def @main(%x: Tensor[(4, 4), float32]) {
          let %a = Neg(%x);
          %0 = fn (%p: Tensor[(4, 4), float32]) attributes {Composite="native.pair"} { (Exp(%p), Abs(%p)) };
          %1 = %0(%a);
          Add(%1.0, %1.1)
        }
    """)
    assert operators(plan) == ["neg_exp_abs_add"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def @main(%x: Tensor[(n, 4), float32]) { Relu(%x) }",
            "a parameter of Tensor[(n, 4), float32] has no native kernel",
        ),
        (
            "def @main(%x: Tensor[(4, 4), float32]) { Det(%x) }",
            "operator 'Det' has no native kernel",
        ),
        (
            "def @main(%c: Tensor[(), bool], %x: Tensor[(4,), float32]) { if (%c) { %x } else { Neg(%x) } }",
            "a native region cannot have an expression If",
        ),
        (
            """
            def @f(%x: Tensor[(4,), float32]) { Neg(%x) }
            def @main(%x: Tensor[(4,), float32]) { @f(%x) }
            """,
            "a native region cannot have a call of a GlobalVar",
        ),
    ],
)
def test_what_has_no_kernel_is_refused(text: str, message: str) -> None:
    with pytest.raises(CompileError) as error:
        planned(text)
    assert error.value.problem == message
    assert ("partition_whole" in str(error.value)) == ("a native region" in message)
