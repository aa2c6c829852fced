"""Gemm as MatMul and Add."""

from __future__ import annotations

import numpy as np

from intarsia.ir import ABSENT, Call, Constant, DType, Expr
from intarsia.op import call as make_call
from intarsia.passes.rules.tensor_facts import dtype_of, int_attr


def decompose_gemm(gemm: Call) -> Expr | None:
    """`Gemm(a, b, c)` as `a @ b + c`; transposes and factors of constants are computed.

    Left alone are factors of integers, as they are floats in Gemm, and a product whose type is not known.
    """
    a, b, *rest = gemm.args
    alpha, beta = (_factor(gemm, name) for name in ("alpha", "beta"))
    dtype = dtype_of(gemm)
    if dtype is None or (dtype.is_integer and (alpha != 1 or beta != 1)):
        return None
    left = _transposed(a) if int_attr(gemm.attrs, "transA", 0) else a
    right = _transposed(b) if int_attr(gemm.attrs, "transB", 0) else b
    if isinstance(right, Constant):
        product: Expr = make_call("MatMul", left, _scaled(right, alpha, dtype))
    else:
        product = _scaled(make_call("MatMul", left, right), alpha, dtype)
    if not rest or rest[0].checked_type == ABSENT or beta == 0:
        return product
    return make_call("Add", product, _scaled(rest[0], beta, dtype))


def _factor(gemm: Call, name: str) -> float:
    value = gemm.attrs.get(name, 1.0)
    assert isinstance(value, (int, float))
    return value


def _transposed(matrix: Expr) -> Expr:
    if isinstance(matrix, Constant):
        return Constant(matrix.data.T)  # a view: what reads it packs its elements in an order of its own
    return make_call("Transpose", matrix, perm=(1, 0))


def _scaled(value: Expr, factor: float, dtype: DType) -> Expr:
    if factor == 1:
        return value
    if isinstance(value, Constant):
        with np.errstate(over="ignore"):  # so would the product
            return Constant((value.data.astype(np.float64) * factor).astype(dtype.numpy))
    return make_call("Mul", value, Constant(np.asarray(factor, dtype.numpy)))
