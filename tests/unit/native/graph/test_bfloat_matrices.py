"""Products of two computed matrices in bfloat16 are those of rounded numbers, with sums in float32."""

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
from tests.unit.native.graph.programs import constant, ints
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import DType, Expr, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import PlanOptions, RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.named_cpus import named_cpu
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target

Array = npt.NDArray[Any]

BFLOAT16 = DType.BFLOAT16.numpy
SETS = x86_sets()
NARROW = PlanOptions(narrows=True)
ROUNDING = 2.0**-8
"""Largest relative error of a rounding to bfloat16."""


def _function(params: tuple[Var, ...], result: Expr) -> Function:
    function = IRModule({GlobalVar("main"): Function(params, result)})["main"]
    assert isinstance(function, Function)
    return function


def _dots(plan: RegionPlan) -> int:
    return sum(str(kernel.dag).count("dot_bf16") for kernel in plan.kernels)


@dataclass(frozen=True)
class Product:
    """A product of two matrices of numbers that bfloat16 holds, so that only the order of sums is free.

    Attributes:
        shapes: Shapes of the matrices.
        orders: Permutations in which they are given, and which transpositions undo.
        are_computed: Whether an operator computes them; else they are parameters.
        is_bfloat: Whether the tensors are in bfloat16; else float32.
        seed: Seed of all numbers.
    """

    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    orders: tuple[tuple[int, ...], tuple[int, ...]]
    are_computed: tuple[bool, bool]
    is_bfloat: bool
    seed: int

    def numbers(self) -> tuple[Array, Array]:
        """The matrices as they are given, without negative numbers, which the operators keep."""
        random, dtype = np.random.default_rng(self.seed), BFLOAT16 if self.is_bfloat else np.float32
        arrays = []
        for shape, order in zip(self.shapes, self.orders, strict=True):
            array = np.abs(random.standard_normal(shape)).astype(BFLOAT16).astype(dtype)
            arrays.append(np.ascontiguousarray(array.transpose(order)))
        return arrays[0], arrays[1]

    def program(self) -> Function:
        """The program of both matrices."""
        params, args = [], []
        for number, array in enumerate(self.numbers()):
            params.append(Var(f"x{number}", checked_type=TensorType.of(array)))
            arg: Expr = call("Relu", params[-1]) if self.are_computed[number] else params[-1]
            order = self.orders[number]
            if order != (*range(len(order)),):
                arg = call("Transpose", arg, perm=tuple(int(place) for place in np.argsort(order)))
            args.append(arg)
        return _function(tuple(params), call("MatMul", *args))

    def check(self, result: Array) -> None:
        """Compare with sums in float64."""
        left, right = (
            array.astype(np.float64).transpose(np.argsort(order))
            for array, order in zip(self.numbers(), self.orders, strict=True)
        )
        expected = left @ right
        step = ROUNDING if self.is_bfloat else 0.0
        assert result.shape == expected.shape
        assert np.all(np.abs(result.astype(np.float64) - expected) <= (1e-5 + step) * expected + 1e-30)


@st.composite
def products(draw: st.DrawFn) -> Product:
    rows, columns = draw(st.integers(16, 40)), draw(st.integers(8, 40))
    depth = draw(st.sampled_from((8, 9, 16, 31, 33, 64)))
    leading = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    others = [
        tuple(draw(st.sampled_from((extent, 1))) for extent in leading[draw(st.integers(0, len(leading))) :])
        for _ in range(2)
    ]
    shapes = (*others[0], rows, depth), (*others[1], depth, columns)
    orders = [tuple(draw(st.permutations(range(len(shape))))) for shape in shapes]
    is_moved = draw(st.booleans()), draw(st.booleans())
    kept = [order if moved else (*range(len(order)),) for order, moved in zip(orders, is_moved, strict=True)]
    are_computed = draw(st.booleans()), draw(st.booleans())
    return Product(
        shapes, (kept[0], kept[1]), are_computed, draw(st.booleans()), draw(st.integers(0, 2**32 - 1))
    )


@given(products(), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(80, quick=8), deadline=None)
def test_products_without_a_schedule(product: Product, name: str) -> None:
    plan = plan_region(product.program(), SETS[name], NARROW)
    assert _dots(plan) == SETS[name].has_bf16_dot
    (result,) = run_plan(plan, list(product.numbers()), SETS[name])
    product.check(result)


@given(products(), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(60, quick=6), deadline=None)
def test_products_as_they_are_built(product: Product, name: str) -> None:
    module = IRModule({GlobalVar("main"): product.program()})
    target = Target("cpu -toolchain=native -multiply_in=bfloat16 -threads=1")
    with patch.object(Isa, "host", classmethod(lambda _: SETS[name])):
        executable = build(partition_whole(module, target))
    product.check(np.asarray(executable(*product.numbers())))


@dataclass(frozen=True)
class Attention:
    """Attention of heads, of products of an input by constant matrices.

    Attributes:
        batch: Number of texts.
        heads: Number of heads.
        tokens: Number of tokens.
        size: Number of elements of a head.
        is_joined: Whether texts and heads are one dimension.
        is_scaled: Whether queries and keys are scaled after they are moved.
        has_mask: Whether a mask is added.
        is_bfloat: Whether the tensors are in bfloat16; else float32.
        seed: Seed of all numbers.
    """

    batch: int
    heads: int
    tokens: int
    size: int
    is_joined: bool
    is_scaled: bool
    has_mask: bool
    is_bfloat: bool
    seed: int

    @property
    def dtype(self) -> Any:
        """Element type of the tensors."""
        return BFLOAT16 if self.is_bfloat else np.float32

    def arrays(self) -> tuple[Array, list[Array], Array]:
        """The input, three constant matrices, and the mask."""
        random, width = np.random.default_rng(self.seed), self.heads * self.size
        x = random.standard_normal((self.batch, self.tokens, width))
        weights = [random.standard_normal((width, width)) / np.sqrt(width) for _ in "qkv"]
        mask = np.where(random.random((1, 1, 1, self.tokens)) < 0.3, -10.0, 0.0)
        return (
            x.astype(self.dtype),
            [weight.astype(self.dtype) for weight in weights],
            mask.astype(self.dtype),
        )

    def program(self) -> Function:
        """The program of the input."""
        array, weights, mask = self.arrays()
        x = Var("x", checked_type=TensorType.of(array))
        parts = [
            self._moved(call("MatMul", x, constant(weight, weight.dtype.type)), number)
            for number, weight in enumerate(weights)
        ]
        scores = call("MatMul", parts[0], parts[1])
        if not self.is_scaled:
            scores = call("Mul", scores, constant(1 / self.size**0.5, self.dtype))
        if self.has_mask:
            scores = call("Add", scores, constant(mask[0] if self.is_joined else mask, mask.dtype.type))
        result = call("MatMul", call("Softmax", scores, axis=-1), parts[2])
        heads = ints(self.batch, self.heads, self.tokens, self.size)
        turned = call("Transpose", call("Reshape", result, heads), perm=(0, 2, 1, 3))
        return _function((x,), call("Reshape", turned, ints(*array.shape)))

    def _moved(self, part: Expr, number: int) -> Expr:
        is_key, is_value = number == 1, number == 2
        heads = call("Reshape", part, ints(self.batch, self.tokens, self.heads, self.size))
        order = (0, 2, 3, 1) if is_key else (0, 2, 1, 3)
        moved = call("Transpose", heads, perm=order)
        if self.is_scaled and not is_value:
            moved = call("Mul", moved, constant(self.size**-0.25, self.dtype))
        if self.is_joined:
            last = (self.size, self.tokens) if is_key else (self.tokens, self.size)
            moved = call("Reshape", moved, ints(self.batch * self.heads, *last))
        return moved

    def expected(self) -> Array:
        """The result in float64."""
        array, narrow, given = self.arrays()
        x, mask = array.astype(np.float64), given.astype(np.float64)
        weights = [weight.astype(np.float64) for weight in narrow]
        shape = self.batch, self.tokens, self.heads, self.size
        query, key, value = ((x @ weight).reshape(shape).transpose(0, 2, 1, 3) for weight in weights)
        scores = query @ key.transpose(0, 1, 3, 2) * (self.size**-0.25) ** 2
        powers = np.exp(scores + mask if self.has_mask else scores)
        result: Array = (powers / powers.sum(-1, keepdims=True)) @ value
        return result.transpose(0, 2, 1, 3).reshape(x.shape)

    def check(self, result: Array) -> None:
        """Compare the norms with the error of a few roundings of inputs."""
        expected = self.expected()
        error = np.linalg.norm(result.astype(np.float64) - expected) / np.linalg.norm(expected)
        assert error <= (8 if self.is_bfloat else 4) * ROUNDING


attentions = st.builds(
    Attention,
    batch=st.integers(1, 2),
    heads=st.integers(1, 3),
    tokens=st.integers(8, 40),
    size=st.sampled_from((8, 9, 16, 32)),
    is_joined=st.booleans(),
    is_scaled=st.booleans(),
    has_mask=st.booleans(),
    is_bfloat=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)


@given(attentions, st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(60, quick=5), deadline=None)
def test_attention_without_a_schedule(attention: Attention, name: str) -> None:
    plan = plan_region(attention.program(), SETS[name], NARROW)
    (result,) = run_plan(plan, [attention.arrays()[0]], SETS[name])
    attention.check(result)


@given(attentions, st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(60, quick=6), deadline=None)
def test_attention_as_it_is_built(attention: Attention, name: str) -> None:
    module = IRModule({GlobalVar("main"): attention.program()})
    target = Target("cpu -toolchain=native -multiply_in=bfloat16 -threads=1")
    with patch.object(Isa, "host", classmethod(lambda _: SETS[name])):
        executable = build(partition_whole(module, target))
    attention.check(np.asarray(executable(attention.arrays()[0])))


@pytest.mark.parametrize("is_joined", [False, True])
@pytest.mark.parametrize("is_bfloat", [False, True])
def test_attention_is_one_kernel_on_words(is_joined: bool, is_bfloat: bool) -> None:
    """Heads are moved as words where they are used, and no kernel only moves or rounds them."""
    attention = Attention(1, 3, 32, 16, is_joined, False, False, is_bfloat, 0)
    plan = plan_region(attention.program(), named_cpu("znver4", 1), NARROW)
    products = [kernel for kernel in plan.kernels if str(kernel.dag).count("dot_bf16") == 2]
    assert len(products) == 1
    (moved,) = [tensor for tensor in products[0].dag.placeholders if tensor.dtype is DType.BFLOAT16]
    assert moved.shape[-1] == 16
    assert is_joined or len(plan.kernels) == (5 if is_bfloat else 6)


def test_products_of_few_rows_stay_in_float32() -> None:
    params = [
        Var(name, checked_type=TensorType(shape, DType.FLOAT32))
        for name, shape in (("x", (8, 64)), ("y", (64, 64)))
    ]
    plan = plan_region(_function(tuple(params), call("MatMul", *params)), named_cpu("znver4", 1), NARROW)
    assert _dots(plan) == 0
