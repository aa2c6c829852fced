"""Products by constants of 4 and 8 bits read these bits, and are exact up to the rounding of float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import x86_sets
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import DType, Expr, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import PlanOptions, RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.native.te.op_attrs import BLOCK_SUMS
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target

Array = npt.NDArray[Any]

SETS = x86_sets()
RANGES = {
    DType.INT4: (-8, 8),
    DType.UINT4: (0, 16),
    DType.INT8: (-128, 128),
    DType.UINT8: (0, 256),
}


@dataclass(frozen=True)
class Layer:
    """A product by a dequantised constant.

    Attributes:
        x: Shape of the left matrix.
        columns: Number of columns of the right one.
        dtype: Type of its numbers.
        block: Rows of a block; 0 for one scale of each column.
        zeros: "several", "one" or "" for zero points.
        operator: MatMul or Gemm, whose matrix is transposed if there are no blocks.
        bias: Whether a Gemm has a bias.
        seed: Seed of all numbers.
    """

    x: tuple[int, ...]
    columns: int
    dtype: DType
    block: int
    zeros: str
    operator: str
    bias: bool
    seed: int

    @property
    def depth(self) -> int:
        """Rows of the right matrix."""
        return self.x[-1]

    @property
    def turns(self) -> bool:
        """Whether the right matrix is given transposed."""
        return self.operator == "Gemm"

    def numbers(self) -> tuple[Array, Array, Array, Array, Array]:
        """The left matrix, numbers, scales (blocks, N), zero points likewise, and the bias."""
        random = np.random.default_rng(self.seed)
        blocks, (low, high) = -(-self.depth // self.block) if self.block else 1, RANGES[self.dtype]
        x = random.standard_normal(self.x).astype(np.float32) + np.float32(0.25)
        numbers = random.integers(low, high, (self.depth, self.columns))
        scale = random.uniform(0.5, 2, (blocks, self.columns)).astype(np.float32)
        zero = random.integers(low, high, scale.shape)
        if self.zeros != "several":
            zero = np.full(scale.shape, zero[0, 0] if self.zeros else 0)
        return x, numbers, scale, zero, random.standard_normal(self.columns).astype(np.float32)

    def program(self) -> Function:
        """The product, with a Relu behind it."""
        _, numbers, scale, zero, bias = self.numbers()
        parts = [numbers, scale, zero] if self.block else [numbers, scale[0], zero[0]]
        if self.turns:
            parts = [part.T for part in parts]
        types: tuple[Any, ...] = (self.dtype.numpy.type, np.float32, self.dtype.numpy.type)
        given_parts = [constant(part, type_) for part, type_ in zip(parts, types, strict=True)]
        axis = 1 if bool(self.block) == self.turns else 0
        attrs: dict[str, Any] = {"block_size": self.block} if self.block else {}
        axis = axis if self.block else 1 - int(self.turns)
        kept = given_parts if self.zeros else given_parts[:2]
        weight = call("DequantizeLinear", *kept, axis=axis, **attrs)
        parameter = Var("x", checked_type=TensorType(self.x, DType.FLOAT32))
        args: list[Expr] = [parameter, weight]
        if self.bias:
            args.append(constant(bias))
        own: dict[str, Any] = {"transB": 1} if self.turns else {}
        return _function(parameter, call("Relu", call(self.operator, *args, **own)))

    def check(self, found: Array) -> None:
        """Compare a result with exact sums, within the rounding of float32."""
        x, numbers, scale, zero, bias = (part.astype(np.float64) for part in self.numbers())
        block = self.block or self.depth
        spread = [np.repeat(part, block, 0)[: self.depth] for part in (scale, zero)]
        weight = (numbers - spread[1]) * spread[0]
        sums, sizes = x @ weight, np.abs(x) @ np.abs(weight)
        if self.bias:
            sums = sums + bias
        assert found.dtype == np.float32
        # Zero points that differ are subtracted from sums, which are larger than the differences.
        largest = sizes + np.abs(x) @ (np.abs(spread[1]) * spread[0]) + 1
        assert np.all(np.abs(found - np.maximum(sums, 0)) <= 4e-6 * largest)


def _function(parameter: Var, result: Expr) -> Function:
    function = IRModule({GlobalVar("main"): Function((parameter,), result)})["main"]
    assert isinstance(function, Function)
    return function


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    dtype = draw(st.sampled_from(list(RANGES)))
    block = draw(st.sampled_from((0, 16, 24, 32)))
    depth = draw(st.integers(1, 90))
    columns = draw(st.one_of(st.integers(8, 40), st.sampled_from((64, 130, 256))))
    zeros, seed = draw(st.sampled_from(("several", "one", ""))), draw(st.integers(0, 2**32 - 1))
    if draw(st.booleans()):
        rows = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
        return Layer((*rows, depth), columns, dtype, block, zeros, "MatMul", False, seed)
    x = draw(st.integers(1, 20)), depth
    return Layer(x, columns, dtype, block, zeros, "Gemm", draw(st.booleans()), seed)


def _products(plan: RegionPlan) -> int:
    return sum(BLOCK_SUMS in op.attrs for kernel in plan.kernels for op in kernel.dag.ops)


@given(layers(), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(120, quick=10), deadline=None)
def test_layers_without_a_schedule(layer: Layer, name: str) -> None:
    plan = plan_region(layer.program(), SETS[name])
    assert _products(plan) == 1
    (found,) = run_plan(plan, [layer.numbers()[0]], SETS[name])
    layer.check(found)


@given(layers(), st.sampled_from(sorted(SETS)), st.sampled_from((1, 2)))
@settings(max_examples=examples(60, quick=8), deadline=None)
def test_layers_as_they_are_built(layer: Layer, name: str, threads: int) -> None:
    module = IRModule({GlobalVar("main"): layer.program()})
    target = Target(f"cpu -toolchain=native -threads={threads}")
    with patch.object(Isa, "host", classmethod(lambda _: SETS[name])):
        executable = build(partition_whole(module, target))
    layer.check(np.asarray(executable(layer.numbers()[0])))


def _stored(plan: RegionPlan) -> int:
    return sum(array.nbytes for kernel in plan.kernels for array in kernel.constants.values())


@pytest.mark.parametrize(("dtype", "share"), [(DType.UINT4, 8), (DType.INT4, 8), (DType.INT8, 4)])
def test_weights_are_as_small_in_memory_as_in_the_file(dtype: DType, share: int) -> None:
    layer = Layer((1, 512), 256, dtype, 32, "", "MatMul", False, 0)
    plan = plan_region(layer.program(), Isa.host())
    scales = 4 * 512 // 32 * 256
    assert _stored(plan) == 4 * 512 * 256 // share + scales


def test_a_matrix_between_products_may_be_transposed() -> None:
    x = Var("x", checked_type=TensorType((3, 64), DType.FLOAT32))
    numbers = np.random.default_rng(0).integers(0, 16, (40, 64))
    weight = call(
        "DequantizeLinear",
        constant(numbers, DType.UINT4.numpy.type),
        constant(np.full((40, 2), 0.5)),
        axis=1,
        block_size=32,
    )
    plan = plan_region(_function(x, call("MatMul", x, call("Transpose", weight))), Isa.host())
    assert _products(plan) == 1
    given_x = np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32)
    (found,) = run_plan(plan, [given_x], Isa.host())
    np.testing.assert_allclose(found, given_x @ (0.5 * numbers.T), rtol=1e-4, atol=1e-3)


def test_other_readers_get_the_matrix_in_float32() -> None:
    x = Var("x", checked_type=TensorType((3, 32), DType.FLOAT32))
    numbers = np.random.default_rng(0).integers(0, 16, (32, 16))
    weight = call("DequantizeLinear", constant(numbers, DType.UINT4.numpy.type), constant(0.5))
    shared = call("Add", call("MatMul", x, weight), call("ReduceSum", weight, keepdims=0))
    plan = plan_region(_function(x, shared), Isa.host())
    assert _products(plan) == 1
    given_x = np.random.default_rng(1).standard_normal((3, 32)).astype(np.float32)
    (found,) = run_plan(plan, [given_x], Isa.host())
    np.testing.assert_allclose(found, given_x @ (0.5 * numbers) + 0.5 * numbers.sum(), rtol=1e-5)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("name", sorted(SETS))
def test_products_in_narrow_floats_are_summed_in_float32(name: str, rows: int, dtype: DType) -> None:
    """The result is the exact one, rounded once; the reference rounds the weights as well."""
    x = Var("x", checked_type=TensorType((rows, 64), dtype))
    random = np.random.default_rng(3)
    numbers = random.integers(0, 16, (64, 40))
    scale = random.uniform(0.5, 2, (2, 40)).astype(dtype.numpy)
    weight = call(
        "DequantizeLinear",
        constant(numbers, DType.UINT4.numpy.type),
        constant(scale, dtype.numpy.type),
        constant(np.full((2, 40), 7), DType.UINT4.numpy.type),
        axis=0,
        block_size=32,
    )
    bias = constant(random.standard_normal(40), dtype.numpy.type)
    function = _function(x, call("Relu", call("Add", call("MatMul", x, weight), bias)))
    plan = plan_region(function, SETS[name])
    assert _products(plan) == 1
    assert len(plan.kernels) == 2, "the left matrix is widened once for all panels"
    given_x = random.standard_normal((rows, 64)).astype(dtype.numpy)
    (found,) = run_plan(plan, [given_x], SETS[name])
    assert found.dtype == dtype.numpy
    exact = given_x.astype(np.float64) @ ((numbers - 7.0) * np.repeat(scale.astype(np.float64), 32, 0))
    exact = np.maximum(exact + bias.data.astype(np.float64), 0)
    unit = 2.0**-10 if dtype is DType.FLOAT16 else 2.0**-7
    assert np.all(np.abs(found.astype(np.float64) - exact) <= unit * (np.abs(exact) + 20))


def test_a_gemm_in_float16_has_its_bias() -> None:
    x = Var("x", checked_type=TensorType((3, 32), DType.FLOAT16))
    weight = call("DequantizeLinear", constant(np.ones((32, 16)), np.int8), constant(0.5, np.float16))
    bias = constant(np.arange(16), np.float16)
    plan = plan_region(_function(x, call("Gemm", x, weight, bias)), Isa.host())
    assert _products(plan) == 1
    (found,) = run_plan(plan, [np.ones((3, 32), np.float16)], Isa.host())
    np.testing.assert_array_equal(found, np.full((3, 16), 16, np.float16) + np.arange(16, dtype=np.float16))


def test_products_of_quantised_inputs_sum_bytes() -> None:
    x = Var("x", checked_type=TensorType((3, 32), DType.UINT8))
    numbers = constant(np.ones((32, 16)), np.int8)
    left, right = (call("DequantizeLinear", part, constant(0.5)) for part in (x, numbers))
    plan = plan_region(_function(x, call("MatMul", left, right)), Isa.host())
    assert _products(plan) == 0
    assert any("dot_u8s8" in str(kernel.dag) for kernel in plan.kernels)


def test_blocks_that_share_words_are_read_in_float32() -> None:
    layer = Layer((3, 40), 16, DType.UINT4, 4, "several", "MatMul", False, 5)
    plan = plan_region(layer.program(), Isa.host())
    assert _products(plan) == 0
    (found,) = run_plan(plan, [layer.numbers()[0]], Isa.host())
    layer.check(found)


def _digit_layer(rows: int, depth: int = 512, block: int = 128, columns: int = 256) -> Layer:
    return Layer((rows, depth), columns, DType.UINT4, block, "one", "MatMul", False, 11)


def _with_dot() -> Isa:
    isa = Isa.host()
    if not isa.has_int8_dot:
        pytest.skip("needs an instruction for sums of products of bytes")
    return isa


def _sums_bytes(plan: RegionPlan) -> bool:
    return any("dot_u8s8" in str(kernel.dag) for kernel in plan.kernels)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("block", [0, 32, 128])
def test_few_rows_sum_bytes_of_three_digits(rows: int, block: int) -> None:
    layer, isa = _digit_layer(rows, block=block), _with_dot()
    plan = plan_region(layer.program(), isa)
    assert _sums_bytes(plan)
    (found,) = run_plan(plan, [layer.numbers()[0]], isa)
    layer.check(found)


def test_what_is_summed_in_float32() -> None:
    """Many rows share the unpacking; of few columns the digits cost too much; AVX2 has no instruction."""
    isa = _with_dot()
    for layer in (_digit_layer(9), _digit_layer(1, columns=128)):
        assert not _sums_bytes(plan_region(layer.program(), isa))
    assert not _sums_bytes(plan_region(_digit_layer(1).program(), SETS["avx2"]))


@pytest.mark.parametrize("size", [1.0, 1e-20, 1e25])
@pytest.mark.parametrize("outlier", [1.0, 1e4])
def test_digits_are_as_exact_as_float32(size: float, outlier: float) -> None:
    """Against float64: the error is that of float32's own sums, also with outliers and empty blocks."""
    layer, isa = _digit_layer(2), _with_dot()
    x, numbers, scale, zero, _ = layer.numbers()
    given_x = x * np.float32(size)
    given_x[0, 7] *= np.float32(outlier)
    given_x[1, 128:256] = 0
    (found,) = run_plan(plan_region(layer.program(), isa), [given_x], isa)
    weight = (numbers - np.repeat(zero, 128, 0)) * np.repeat(scale.astype(np.float64), 128, 0)
    exact = np.maximum(given_x.astype(np.float64) @ weight, 0)
    sizes = np.abs(given_x.astype(np.float64)) @ np.abs(weight)
    assert np.all(np.abs(found - exact) <= 4e-6 * sizes)


def test_digits_at_the_ends_of_their_range() -> None:
    """Equal numbers of the largest magnitude, and the largest weights: the longest sums of a block."""
    isa = _with_dot()
    x = Var("x", checked_type=TensorType((2, 4096), DType.FLOAT32))
    weight = call(
        "DequantizeLinear",
        constant(np.full((4096, 256), 15), DType.UINT4.numpy.type),
        constant(np.ones(256)),
        axis=1,
    )
    plan = plan_region(_function(x, call("MatMul", x, weight)), isa)
    assert _sums_bytes(plan)
    given_x = np.stack([np.full(4096, 3.5), np.full(4096, -3.5)]).astype(np.float32)
    (found,) = run_plan(plan, [given_x], isa)
    np.testing.assert_allclose(found, np.repeat([[3.5 * 15 * 4096], [-3.5 * 15 * 4096]], 256, 1), rtol=1e-6)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_block_that_is_not_finite_makes_its_row_nan(value: float) -> None:
    isa, layer = _with_dot(), _digit_layer(2)
    x = layer.numbers()[0].copy()
    x[1, 300] = value
    (found,) = run_plan(plan_region(layer.program(), isa), [x], isa)
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()


def test_panels_waste_little() -> None:
    """Few columns get panels of fewer vectors, so that the padding stays small."""
    for columns in (64, 100, 128, 200, 1000):
        layer = Layer((1, 128), columns, DType.UINT4, 32, "", "MatMul", False, 0)
        plan = plan_region(layer.program(), SETS["host"], PlanOptions())
        words = max(array.nbytes for kernel in plan.kernels for array in kernel.constants.values())
        assert words <= 128 * (columns + 64) / 2
