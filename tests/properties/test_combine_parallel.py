"""Random programs of convolutions and products on few values: combining changes nothing but their number."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.parallel_programs import constant, image, program
from tests.pass_checks import checked, operator_counts
from tests.properties.random_programs import programs

from intarsia.ir import Expr, IRModule
from intarsia.op import call, infer_types
from intarsia.passes import CombineParallelConv2D, CombineParallelMatMul

FEW = settings(max_examples=examples(30), deadline=None)


@st.composite
def branching_programs(draw: st.DrawFn, heavy: str) -> IRModule:
    """Values of two channels, made of each other by the heavy operator, biases, activations and sums."""
    shape = (1, 2, 4, 4) if heavy == "Conv" else (3, 2)
    x = image(*shape)
    values: list[Expr] = [x]
    for seed in range(draw(st.integers(3, 14))):
        kind = draw(st.sampled_from([heavy, heavy, heavy, "bias", "Relu", "Tanh", "Add"]))
        value = draw(st.sampled_from(values[-4:] if kind != heavy else values[:2] + values[-1:]))
        values.append(_made(draw, kind, value, values, seed))
    return program(x, *draw(st.lists(st.sampled_from(values), min_size=1, max_size=4)), values[-1])


def _made(draw: st.DrawFn, kind: str, value: Expr, values: list[Expr], seed: int) -> Expr:
    match kind:
        case "Conv":
            kernel = draw(st.sampled_from([1, 3]))
            weight = constant(2, 2, kernel, kernel, seed=seed)
            return call("Conv", value, weight, pads=(kernel // 2,) * 4)
        case "MatMul":
            return call("MatMul", value, constant(2, 2, seed=seed))
        case "bias":
            assert value.checked_type is not None
            is_image = "4" in str(value.checked_type)
            return call("Mul", value, constant(*((2, 1, 1) if is_image else (2,)), seed=seed))
        case "Add":
            return call("Tanh", call("Add", value, draw(st.sampled_from(values))))
        case _:
            return call(kind, value)


@FEW
@given(branching_programs("Conv"), st.integers(2, 3))
def test_convolutions(before: IRModule, least: int) -> None:
    after = checked(CombineParallelConv2D(least), before)
    assert operator_counts(after)["Conv"] <= operator_counts(before)["Conv"]


@FEW
@given(branching_programs("MatMul"), st.integers(2, 3))
def test_products(before: IRModule, least: int) -> None:
    after = checked(CombineParallelMatMul(least), before)
    assert operator_counts(after)["MatMul"] <= operator_counts(before)["MatMul"]


@settings(max_examples=examples(15), deadline=None)
@given(programs())
def test_programs_without_any_are_returned_as_they_are(before: IRModule) -> None:
    before = infer_types(before)
    assert CombineParallelConv2D(2)(before) is before
    assert CombineParallelMatMul(2)(before) is before
