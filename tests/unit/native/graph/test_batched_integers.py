"""Products of two computed matrices of quantised numbers sum words of bytes, and are exact."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import x86_sets
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.quantised_layers import BYTES
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import DType, Expr, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target

Array = npt.NDArray[Any]

SETS = x86_sets()


@dataclass(frozen=True)
class Product:
    """A product of two quantised matrices, with scales of 1/32 and 1/8.

    Attributes:
        shapes: Shapes of the matrices.
        dtypes: Types of their bytes.
        zeros: Their zero points.
        is_turned: Whether the right matrix is given transposed.
        is_requantised: Whether the result is quantised by a scale of 4.
        seed: Seed of all numbers.
    """

    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    dtypes: tuple[Any, Any]
    zeros: tuple[int, int]
    is_turned: bool
    is_requantised: bool
    seed: int

    def numbers(self) -> tuple[Array, Array]:
        """The bytes of both matrices, as they are given."""
        random = np.random.default_rng(self.seed)
        made = [
            random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
            for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        ]
        right = np.ascontiguousarray(np.swapaxes(made[1], -1, -2)) if self.is_turned else made[1]
        return made[0], right

    def program(self) -> Function:
        """The program of both bytes."""
        params = [
            Var(name, checked_type=TensorType.of(x)) for name, x in zip("xy", self.numbers(), strict=True)
        ]
        args: list[Expr] = [
            call("DequantizeLinear", param, constant(scale), constant(zero, dtype))
            for param, scale, zero, dtype in zip(
                params, (2.0**-5, 2.0**-3), self.zeros, self.dtypes, strict=True
            )
        ]
        if self.is_turned:
            rank = len(self.shapes[1])
            args[1] = call("Transpose", args[1], perm=(*range(rank - 2), rank - 1, rank - 2))
        result = call("MatMul", *args)
        if self.is_requantised:
            result = call("QuantizeLinear", result, constant(4.0), constant(3, np.uint8))
        function = IRModule({GlobalVar("main"): Function(tuple(params), result)})["main"]
        assert isinstance(function, Function)
        return function

    def expected(self) -> Array:
        """The result, by sums of integers."""
        left, right = self.numbers()
        turned = np.swapaxes(right, -1, -2) if self.is_turned else right
        sums = (left.astype(np.int64) - self.zeros[0]) @ (turned.astype(np.int64) - self.zeros[1])
        value = sums.astype(np.float32) * np.float32(2.0**-8)
        if not self.is_requantised:
            return value
        quantised: Array = np.clip(np.rint(value / 4) + 3, 0, 255).astype(np.uint8)
        return quantised


@st.composite
def batched_products(draw: st.DrawFn) -> Product:
    rows, columns = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    depth = draw(st.sampled_from((1, 3, 4, 8, 16, 30, 64)))
    leading = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    others = [
        tuple(draw(st.sampled_from((extent, 1))) for extent in leading[draw(st.integers(0, len(leading))) :])
        for _ in range(2)
    ]
    dtypes = draw(BYTES), draw(BYTES)
    zeros = [
        draw(st.sampled_from((0, 5, int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)))) for dtype in dtypes
    ]
    return Product(
        ((*others[0], rows, depth), (*others[1], depth, columns)),
        dtypes,
        (zeros[0], zeros[1]),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.integers(0, 2**32 - 1)),
    )


@given(batched_products(), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(80, quick=6), deadline=None)
def test_products_without_a_schedule(product: Product, name: str) -> None:
    plan = plan_region(product.program(), SETS[name])
    assert any("dot_u8s8" in str(kernel.dag) for kernel in plan.kernels)
    (found,) = run_plan(plan, list(product.numbers()), SETS[name])
    np.testing.assert_array_equal(found, product.expected())


@given(batched_products(), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(60, quick=5), deadline=None)
def test_products_as_they_are_built(product: Product, name: str) -> None:
    module = IRModule({GlobalVar("main"): product.program()})
    with patch.object(Isa, "host", classmethod(lambda _: SETS[name])):
        executable = build(partition_whole(module, Target.for_toolchain("native", threads=1)))
    np.testing.assert_array_equal(executable(*product.numbers()), product.expected())


@given(batched_products(), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(60, quick=5), deadline=None)
def test_operators_on_quantised_matrices(product: Product, name: str) -> None:
    """Scales of one operator: 1/32, 1/8 and 4, with the zero point 3."""
    product = replace(product, is_turned=False, is_requantised=True)
    arrays = product.numbers()
    params = [Var(name, checked_type=TensorType.of(x)) for name, x in zip("xy", arrays, strict=True)]
    zeros = [constant(zero, dtype) for zero, dtype in zip(product.zeros, product.dtypes, strict=True)]
    args = params[0], constant(2.0**-5), zeros[0], params[1], constant(2.0**-3), zeros[1]
    result = call("QLinearMatMul", *args, constant(4.0), constant(3, np.uint8))
    function = IRModule({GlobalVar("main"): Function(tuple(params), result)})["main"]
    assert isinstance(function, Function)
    plan = plan_region(function, SETS[name])
    assert any("dot_u8s8" in str(kernel.dag) for kernel in plan.kernels)
    (found,) = run_plan(plan, list(arrays), SETS[name])
    exact = product.expected()
    # Of two nearest numbers ONNX names none: it says nothing of the order of rounding and the zero point.
    is_tie = replace(product, is_requantised=False).expected() / 4 % 1 == 0.5
    np.testing.assert_array_equal(found[~is_tie], exact[~is_tie])


@given(batched_products(), st.booleans(), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(60, quick=5), deadline=None)
def test_sums_of_integers(product: Product, is_computed: bool, name: str) -> None:
    """MatMulInteger of two computed matrices, with zero points that are constant or known when it runs."""
    (*leading, _, depth), right = product.shapes
    product = replace(product, shapes=((*leading, 5, depth), right), is_turned=False, is_requantised=False)
    arrays: list[Array] = list(product.numbers())
    zeros = [np.asarray(zero, dtype) for zero, dtype in zip(product.zeros, product.dtypes, strict=True)]
    arrays += zeros if is_computed else []
    params = [Var(f"x{i}", checked_type=TensorType.of(x)) for i, x in enumerate(arrays)]
    known = [] if is_computed else [constant(zero, zero.dtype.type) for zero in zeros]
    module = IRModule({GlobalVar("main"): Function(tuple(params), call("MatMulInteger", *params, *known))})
    function = module["main"]
    assert isinstance(function, Function)
    plan = plan_region(function, SETS[name])
    assert any("dot_u8s8" in str(kernel.dag) for kernel in plan.kernels)
    (found,) = run_plan(plan, arrays, SETS[name])
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, product.expected() * 2.0**8)


def test_few_rows_are_multiplied_by_single_bytes() -> None:
    """To pack a matrix in words takes longer than a product of one row."""
    params = [
        Var(name, checked_type=TensorType(shape, DType.UINT8))
        for name, shape in (("x", (1, 64)), ("y", (64, 32)))
    ]
    function = IRModule({GlobalVar("main"): Function(tuple(params), call("MatMulInteger", *params))})["main"]
    assert isinstance(function, Function)
    plan = plan_region(function, Isa.host())
    assert not any("dot_u8s8" in str(kernel.dag) for kernel in plan.kernels)
