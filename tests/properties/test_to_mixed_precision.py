"""Random programs in mixed precision: types stay, results stay near, and a second run finds nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.parallel_programs import constant, image
from tests.pass_checks import checked
from tests.properties.random_programs import programs

from intarsia.ir import DType, Expr, Function, If, IRModule, Let, TensorType, Tuple, Var
from intarsia.op import call, tuple_get
from intarsia.passes import ToMixedPrecision

KINDS = (
    "MatMul",
    "MatMul",
    "Tanh",
    "Add",
    "Max",
    "Softmax",
    "Transpose",
    "Split",
    "Gemm",
    "If",
    "Let",
    "Shape",
)


@st.composite
def mixed_programs(draw: st.DrawFn) -> IRModule:
    """Square matrices made of each other by operators of all three kinds, branches and lets."""
    x = image(3, 3)
    flag = Var("flag", checked_type=TensorType((), DType.BOOL))
    values: list[Expr] = [x]
    for seed in range(draw(st.integers(2, 12))):
        kind = draw(st.sampled_from(KINDS))
        first, second = (draw(st.sampled_from(values)) for _ in range(2))
        values.append(_made(kind, first, second, flag, seed))
    results = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return IRModule.from_expr(Function((x, flag), Tuple((*results, values[-1]))))


def _made(kind: str, first: Expr, second: Expr, flag: Expr, seed: int) -> Expr:
    match kind:
        case "MatMul":
            return call("MatMul", call("Tanh", first), constant(3, 3, seed=seed))
        case "Gemm":
            return call("Gemm", call("Tanh", first), constant(3, 3, seed=seed), second)
        case "Add" | "Max":
            return call(kind, first, second)
        case "Split":
            parts = call("Split", first, outputs=2, num_outputs=2, axis=0)
            return call("Concat", tuple_get(parts, 1), tuple_get(parts, 0), axis=0)
        case "Shape":
            return call("Add", first, call("Cast", call("Size", second), to=1))
        case "If":
            return If(flag, call("Neg", first), second, checked_type=first.checked_type)
        case "Let":
            v = Var("v", checked_type=first.checked_type)
            return Let(v, first, call("MatMul", call("Tanh", call("Add", v, second)), constant(3, 3)))
        case _:
            return call(kind, first)


@settings(max_examples=examples(40), deadline=None)
@given(mixed_programs(), st.sampled_from(["float16", "bfloat16"]))
def test_results_stay_near(before: IRModule, dtype: str) -> None:
    tolerance = {"float16": 2e-2, "bfloat16": 1.5e-1}[dtype]
    # Elements within these programs are about 1; what is left where two cancel is their rounding.
    after = checked(ToMixedPrecision(dtype), before, rtol=tolerance, atol=tolerance, least_scale=1.0)
    assert after["main"].checked_type == before["main"].checked_type


@settings(max_examples=examples(20), deadline=None)
@given(programs())
def test_programs_of_all_kinds_of_expressions(before: IRModule) -> None:
    """All their operators are elementwise: lowering some of them makes the others follow."""
    checked(ToMixedPrecision("float16", lower=("Tanh", "Sigmoid")), before, rtol=2e-2, atol=2e-2)
