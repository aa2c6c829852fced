"""Attention in parts computes what the operator computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia import build
from intarsia.ir import DType, Expr, Function, IRModule, TensorType, Tuple, Var, post_order
from intarsia.op import absent, call, tuple_get
from intarsia.op.infer import infer_types
from intarsia.passes.decoding.attention_parts import with_attention_parts
from intarsia.passes.rules.tensor_facts import operator_name
from intarsia.runtime.tensor_info import static_shape

NEW, PAST, SIZE, VALUE_SIZE = 3, 4, 6, 5


def program(
    shared: int, groups: int, is_flat: bool, mask: DType | None, attributes: dict[str, Any]
) -> IRModule:
    """Attention with a past, of two texts."""
    heads = shared * groups
    shapes: dict[str, tuple[int, ...]] = {
        name: (2, NEW, count * size) if is_flat else (2, count, NEW, size)
        for name, count, size in (("q", heads, SIZE), ("k", shared, SIZE), ("v", shared, VALUE_SIZE))
    }
    types = {name: TensorType(shape, DType.FLOAT32) for name, shape in shapes.items()}
    if mask is not None:
        types["mask"] = TensorType((2, 1, NEW, NEW + PAST), mask)
    types["past_key"] = TensorType((2, shared, PAST, SIZE), DType.FLOAT32)
    types["past_value"] = TensorType((2, shared, PAST, VALUE_SIZE), DType.FLOAT32)
    params = {name: Var(name, checked_type=type_) for name, type_ in types.items()}
    if is_flat:
        attributes = attributes | {"q_num_heads": heads, "kv_num_heads": shared}
    args: list[Expr] = [
        params.get(name, absent()) for name in ("q", "k", "v", "mask", "past_key", "past_value")
    ]
    attention = call("Attention", *args, outputs=3, **attributes)
    body = Tuple(tuple(tuple_get(attention, index) for index in range(3)))
    return infer_types(IRModule.from_expr(Function(tuple(params.values()), body)))


@given(
    st.integers(1, 2),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([None, DType.BOOL, DType.FLOAT32]),
    st.sampled_from([0, 1]),
    st.sampled_from([None, 0.25]),
    st.integers(0, 99),
)
def test_parts_compute_what_the_operator_computes(
    shared: int, groups: int, is_flat: bool, mask: DType | None, causal: int, scale: float | None, seed: int
) -> None:
    attributes = {"is_causal": causal} | ({} if scale is None else {"scale": scale})
    before = program(shared, groups, is_flat, mask, attributes)
    parts = with_attention_parts(before["main"])
    assert not any(operator_name(node) == "Attention" for node in post_order(parts))
    after = before.with_function("main", parts)
    random = np.random.default_rng(seed)
    with build(before) as expected, build(after) as exe:
        inputs = {}
        for info in exe.inputs:
            values = random.normal(size=static_shape(info)).astype(np.float32)
            inputs[info.name] = values > -1 if info.dtype == "bool" else values
        if mask is DType.BOOL:
            inputs["mask"][..., 0] = True  # each query sees something
        for actual, right in zip(exe(inputs), expected(inputs), strict=True):
            np.testing.assert_allclose(actual, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attributes", [{"softcap": 3.0}, {"qk_matmul_output_mode": 1}])
def test_other_forms_stay(attributes: dict[str, Any]) -> None:
    main = program(1, 1, False, None, attributes)["main"]
    assert with_attention_parts(main) is main
