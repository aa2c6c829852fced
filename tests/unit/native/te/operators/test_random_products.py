"""Matrix products of random shapes against NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.te.operators.checked_call import check, make_call
from tests.unit.native.te.operators.sliding import FLOATS, seeded


@settings(max_examples=examples(60, quick=6), deadline=None)
@given(data=st.data(), dtype=st.sampled_from(["float32", "float64", "float16", "int32", "uint64"]))
def test_matmul(data: st.DataObject, dtype: str) -> None:
    sizes = st.integers(0, 4)
    m, k, n = (data.draw(sizes) for _ in range(3))
    batch = data.draw(st.lists(st.integers(1, 3), max_size=2))
    left = [1 if data.draw(st.booleans()) else extent for extent in batch][data.draw(st.integers(0, 1)) :]
    lhs = (*left, m, k) if data.draw(st.booleans()) or left else (k,)
    rhs = (*batch, k, n) if data.draw(st.booleans()) or batch else (k,)
    if dtype in ("int32", "uint64"):
        random = np.random.default_rng(0)
        pair = [random.integers(0, 1000, shape).astype(dtype) for shape in (lhs, rhs)]
    else:
        pair = [seeded(lhs, dtype), seeded(rhs, dtype, 1)]
    wide = np.float64 if dtype.startswith("float") else np.dtype(dtype)
    expected = np.asarray(np.matmul(pair[0].astype(wide), pair[1].astype(wide)), dtype)
    check(make_call("MatMul", *pair), [expected], length=k)


@settings(max_examples=examples(60, quick=6), deadline=None)
@given(
    sizes=st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)),
    turned=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    scales=st.tuples(st.sampled_from([0.0, 1.0, -0.5]), st.sampled_from([0.0, 1.0, 2.5])),
    data=st.data(),
    dtype=FLOATS,
)
def test_gemm(
    sizes: tuple[int, int, int],
    turned: tuple[int, int],
    scales: tuple[float, float],
    data: st.DataObject,
    dtype: str,
) -> None:
    m, k, n = sizes
    a = seeded((k, m) if turned[0] else (m, k), dtype)
    b = seeded((n, k) if turned[1] else (k, n), dtype, 1)
    shape = data.draw(st.sampled_from([None, (), (1,), (n,), (1, n), (m, 1), (m, n), (1, 1)]))
    c = None if shape is None else seeded(shape, dtype, 2)
    left, right = (a.T if turned[0] else a), (b.T if turned[1] else b)
    product = scales[0] * (left.astype(np.float64) @ right.astype(np.float64))
    expected = product if c is None else product + scales[1] * c.astype(np.float64)
    attrs = {"alpha": scales[0], "beta": scales[1], "transA": turned[0], "transB": turned[1]}
    check(make_call("Gemm", a, b, c, **attrs), [expected.astype(dtype)], length=k)
