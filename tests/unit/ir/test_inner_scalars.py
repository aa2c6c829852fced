"""The scalars of a tree as a list are those of the walk, in its order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from intarsia.ir import DType
from intarsia.ir.loop_walk import inner_scalars, scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Buffer, Cast, Intrinsic, Literal, Load, LoopVar, Scalar

X = Buffer("x", (8, 8), DType.FLOAT32)


def trees() -> st.SearchStrategy[Scalar]:
    """Return scalars of all kinds."""
    leaves = st.one_of(
        st.sampled_from("ij").map(LoopVar), st.integers(0, 9).map(lambda n: Literal(n, DType.INT64))
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda pair: Arith(ArithOp.ADD, pair)),
            st.tuples(inner, inner, inner).map(lambda three: Arith(ArithOp.SELECT, three)),
            st.tuples(inner, inner).map(lambda pair: Load(X, pair)),
            inner.map(lambda scalar: Cast(scalar, DType.INT32)),
            st.tuples(inner, inner).map(lambda pair: Intrinsic("pow", pair, DType.FLOAT32)),
        ),
        max_leaves=20,
    )


@given(root=trees())
def test_they_are_those_of_the_walk(root: Scalar) -> None:
    listed, walked = inner_scalars(root), [scalar for scalar, _ in scalar_post_order(root)]
    assert len(listed) == len(walked)
    assert all(a is b for a, b in zip(listed, walked, strict=True))
