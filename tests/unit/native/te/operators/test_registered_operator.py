"""Native kernels of registered operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.onnx_models import model_of
from tests.registered_operators import (
    Array,
    gated,
    gated_inputs,
    gated_module,
    gated_registered,
    gated_result,
    registered,
)

import intarsia as ia
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import IRModule, TensorType
from intarsia.native import te
from intarsia.op.operator_facts import OpPatternKind
from intarsia.op.register_operator import first_input_type
from intarsia.passes import PartitionWhole
from intarsia.runtime.executable import Executable
from intarsia.support.errors import CompileError
from intarsia.toolchain.native.plan import planned_region


def native(module: IRModule) -> Executable:
    return ia.build(PartitionWhole("cpu -toolchain=native")(module))


def number_of_kernels(executable: Executable) -> int:
    (kernel,) = executable.kernels
    return len(planned_region(kernel.source).plan.kernels)


def imported(text: str, **weights: Any) -> IRModule:
    return from_onnx(model_of(text, imports='"acme": 1', **weights))


def twice(x: Array) -> Array:
    return 2 * x


def twice_kernel(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda *i: 2.0 * x[i])


def test_the_kernel_computes_what_the_reference_defines() -> None:
    inputs = gated_inputs()
    with gated_registered():
        result = native(gated_module())(*inputs.values())
    np.testing.assert_allclose(result, gated_result(inputs), rtol=1e-5, atol=1e-5)


def test_several_calls_and_weights_that_are_constants() -> None:
    inputs = gated_inputs()
    text = """g (float[4,16] x) => (float[4,24] y) {
        h = acme.Gated<alpha = 0.5>(x, a, b)
        i = acme.Gated(x, b, a)
        y = Add(h, i)
    }"""
    with gated_registered():
        module = imported(text, a=inputs["a"], b=inputs["b"])
        expected = ia.build(PartitionWhole("cpu -toolchain=reference")(module))(inputs["x"])
        result = native(module)(inputs["x"])
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("fusion", "kernels"), [(OpPatternKind.ELEMWISE, 1), (OpPatternKind.OPAQUE, 3)], ids=["fused", "alone"]
)
def test_an_elementwise_operator_is_fused(fusion: OpPatternKind, kernels: int) -> None:
    text = """g (float[4,16] x, float[16,8] w) => (float[4,8] y) {
        p = MatMul(x, w)
        t = acme.Twice(p)
        y = Tanh(t)
    }"""
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((4, 16), np.float32), rng.standard_normal((16, 8), np.float32)
    with registered("acme::Twice", first_input_type, twice_kernel, twice, fusion=fusion):
        executable = native(imported(text))
        np.testing.assert_allclose(executable(x, w), np.tanh(2 * (x @ w)), rtol=1e-5, atol=1e-5)
        assert number_of_kernels(executable) == kernels


def test_several_outputs_and_an_optional_input() -> None:
    def infer(x: TensorType, bias: TensorType | None = None) -> tuple[TensorType, TensorType]:
        del bias
        return x, x

    def kernel(x: te.Tensor, bias: te.Tensor | None = None) -> list[te.Tensor]:
        shifted = x if bias is None else te.compute(x.shape, lambda i, j: x[i, j] + bias[j], name="shifted")
        return [
            te.compute(x.shape, lambda i, j: 2.0 * shifted[i, j], name="double"),
            te.compute(x.shape, lambda i, j: 3.0 * shifted[i, j], name="triple"),
        ]

    def reference(x: Array, bias: Array | None = None) -> tuple[Array, Array]:
        shifted = x if bias is None else x + bias
        return 2 * shifted, 3 * shifted

    text = """g (float[3,4] x, float[4] b) => (float[3,4] y, float[3,4] z, float[3,4] u) {
        y, z = acme.Multiples(x, b)
        u = acme.Multiples(x)
    }"""
    x, b = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(4, dtype=np.float32)
    with registered("acme::Multiples", infer, kernel, reference, outputs=["double", "triple"]):
        y, z, u = native(imported(text))(x, b)
    np.testing.assert_array_equal(y, 2 * (x + b))
    np.testing.assert_array_equal(z, 3 * (x + b))
    np.testing.assert_array_equal(u, 2 * x)


def test_rows_of_any_number() -> None:
    text = """g (float[n,16] x) => (float[n,24] y) {
        r = Relu(x)
        y = acme.Gated(r, a, b)
    }"""
    inputs = gated_inputs()
    with gated_registered(batched=True):
        executable = native(imported(text, a=inputs["a"], b=inputs["b"]))
        for rows in (1, 3, 4, 37):
            x = np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32)
            expected = gated(np.maximum(x, 0), inputs["a"], inputs["b"])
            np.testing.assert_allclose(executable(x), expected, rtol=1e-5, atol=1e-5)
    with gated_registered(), pytest.raises(CompileError, match="mixes items"):
        native(imported(text, a=inputs["a"], b=inputs["b"]))


def transposed_kernel(x: te.Tensor, gate: te.Tensor, up: te.Tensor, *, alpha: float) -> te.Tensor:
    del up, alpha
    return te.compute((gate.shape[1], x.shape[0]), lambda i, j: x[j, 0] + gate[0, i])


def unnamed_kernel(x: te.Tensor, gate: te.Tensor, up: te.Tensor, *, alpha: float) -> te.Tensor:
    del up, alpha
    first = te.compute((x.shape[0], gate.shape[1]), lambda i, j: x[i, 0] + gate[0, j])
    return te.compute(first.shape, lambda i, j: first[i, j] * 2.0)


def raising_kernel(x: te.Tensor, gate: te.Tensor, up: te.Tensor, *, alpha: float) -> te.Tensor:
    del x, gate, up, alpha
    raise ValueError("a batch of 1 only")


def outer_kernel(x: te.Tensor, gate: te.Tensor, up: te.Tensor, *, alpha: float) -> te.Tensor:
    del up, alpha
    other = te.placeholder((1,), name="other")
    return te.compute((x.shape[0], gate.shape[1]), lambda i, j: x[i, 0] + gate[0, j] + other[0])


@pytest.mark.parametrize(
    ("compute", "problem"),
    [
        (
            transposed_kernel,
            "operator 'acme::Gated' contradicts itself: for 'output' compute gives "
            "Tensor[(24, 4), float32], infer says Tensor[(4, 24), float32]",
        ),
        (
            unnamed_kernel,
            "operator 'acme::Gated' has no native kernel for its inputs: its compute rule names two tensors "
            "'compute'; pass te.compute a name for each",
        ),
        (
            raising_kernel,
            "operator 'acme::Gated' has no native kernel for these attributes and shapes "
            "(ValueError: a batch of 1 only)",
        ),
        (
            outer_kernel,
            "operator 'acme::Gated' has no native kernel for its inputs: 'other' of its compute rule is "
            "neither an input nor a te.compute",
        ),
        (
            lambda *_, **__: 1,
            "operator 'acme::Gated' has no native kernel for its inputs: compute returns 1, expected tensors "
            "of native.te",
        ),
        (
            lambda *_, **__: [],
            "operator 'acme::Gated' has no native kernel for its inputs: compute returns 0 tensors, "
            "expected 1",
        ),
    ],
    ids=["shape", "names", "raises", "placeholder", "number", "empty"],
)
def test_a_compute_rule_that_does_not_fit(compute: Any, problem: str) -> None:
    with gated_registered(compute=compute), pytest.raises(CompileError) as caught:
        native(gated_module())
    assert caught.value.problem == f"native cannot compile this: {problem}"
    assert "at node 'h' (Gated)" in str(caught.value)
