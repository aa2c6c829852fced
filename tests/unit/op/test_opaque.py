"""Opaque operators: declared domains, types, values, and what the rest of the compiler does with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.contributed_nodes import MICROSOFT, domains_of, feeds_of, node_model
from tests.onnx_models import model_of, onnxruntime_outputs

import intarsia as ia
from intarsia.frontend.onnx import from_onnx, import_notes, to_onnx
from intarsia.ir import Call, IRModule, Op, post_order
from intarsia.ir.canonical import structural_digest
from intarsia.ir.parser import parse_module
from intarsia.op import call, verify
from intarsia.op.evaluate import evaluate_call
from intarsia.op.opaque import declared_toolchains, holding_operator_domain, is_declared, opaque_operators
from intarsia.op.operator_predicate import operator_predicate
from intarsia.passes import AnnotateTarget, FoldConstant, PartitionWhole
from intarsia.support.errors import CompileError, InvalidModelError, UnsupportedModelError

SQUARES = np.stack([np.eye(3, dtype=np.float32) * 2, np.eye(3, dtype=np.float32) * 4])

MODEL = """
g (float[2,3,3] x) => (float[2,3,3] y, float[2,3] z) {
    a = Relu(x)
    b = com.microsoft.Inverse(a)
    y = Sigmoid(b)
    z = ReduceSum<keepdims = 0>(b, axis)
}
"""


def opaque_module() -> IRModule:
    return from_onnx(opaque_model())


def opaque_model() -> Any:
    return model_of(MODEL, imports='"com.microsoft": 1', axis=np.array([2]))


def the_call(module: IRModule) -> Call:
    (opaque,) = (
        expr
        for expr in post_order(module["main"])
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.domain
    )
    return opaque


def test_an_operator_without_definition_is_opaque_and_the_rest_is_typed() -> None:
    module = opaque_module()
    assert domains_of(module) == {"", MICROSOFT}
    opaque = the_call(module)
    assert str(opaque.checked_type) == "Tensor[(2, 3, 3), float32]"
    assert str(module["main"].result_type) == "(Tensor[(2, 3, 3), float32], Tensor[(2, 3), float32])"
    verify(module)


def test_text_and_digest() -> None:
    module = opaque_module()
    again = parse_module(str(module), [np.array([2])])
    assert structural_digest(again) == structural_digest(module)


def test_export_imports_the_domain() -> None:
    exported = to_onnx(opaque_module())
    assert {item.domain: item.version for item in exported.opset_import} == {"": 26, MICROSOFT: 1}
    for result, expected in zip(
        onnxruntime_outputs(exported, {"x": SQUARES}),
        onnxruntime_outputs(opaque_model(), {"x": SQUARES}),
        strict=True,
    ):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("toolchain", ["reference", "onnxruntime"])
def test_whole_on_a_toolchain(toolchain: str) -> None:
    module = PartitionWhole(f"cpu -toolchain={toolchain}")(opaque_module())
    results = ia.build(module)(SQUARES)
    for result, expected in zip(results, onnxruntime_outputs(opaque_model(), {"x": SQUARES}), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("toolchain", ["native", "openvino"])
def test_a_toolchain_that_is_not_declared_refuses(toolchain: str) -> None:
    module = opaque_module()
    assert not operator_predicate(toolchain)(the_call(module))
    with pytest.raises(CompileError) as caught:
        ia.build(PartitionWhole(f"cpu -toolchain={toolchain}")(module))
    assert caught.value.problem == (
        f"{toolchain} cannot compile this: operator 'com.microsoft::Inverse' is opaque, and its domain is "
        "declared for onnxruntime only"
    )


def test_predicates_follow_the_declaration() -> None:
    opaque = the_call(opaque_module())
    assert operator_predicate("onnxruntime")(opaque)
    assert operator_predicate("reference")(opaque)
    assert declared_toolchains(MICROSOFT, "Inverse") == {"onnxruntime"}
    assert declared_toolchains("", "Relu") == declared_toolchains("acme", "Inverse") == frozenset()


def test_annotation_gives_only_the_opaque_call_to_its_toolchain() -> None:
    annotated = AnnotateTarget(("openvino", "onnxruntime"))(opaque_module())
    targets = {
        str(expr.op): str(expr.virtual_device.target)
        for expr in post_order(annotated["main"])
        if isinstance(expr, Call)
    }
    assert "onnxruntime" in targets.pop("com.microsoft::Inverse")
    assert all("openvino" in target for target in targets.values())


def test_constants_are_evaluated_and_folded() -> None:
    x = ia.from_onnx(model_of("g () => (float[2,3,3] y) { y = Identity(c) }", c=SQUARES))["main"].body
    constant = x.args[0] if isinstance(x, Call) else x
    inverse = call("Inverse", constant, domain=MICROSOFT)
    np.testing.assert_array_equal(evaluate_call(inverse), np.linalg.inv(SQUARES))
    model = model_of(
        "g (float[2,3,3] x) => (float[2,3,3] y) { a = com.microsoft.Inverse(c)\n y = Add(x, a) }",
        imports='"com.microsoft": 1',
        c=SQUARES,
    )
    folded = FoldConstant()(from_onnx(model))
    assert domains_of(folded) == {""}


def test_opaque_operators_are_listed() -> None:
    (entry,) = opaque_operators(opaque_module())
    assert (entry.name, entry.calls, entry.toolchains) == ("com.microsoft::Inverse", 1, ("onnxruntime",))
    assert entry.judge == "onnxruntime without optimisations"
    assert opaque_operators(from_onnx(node_model("Gelu", {"x": SQUARES}))) == ()


def test_symbols_pass_through() -> None:
    module = from_onnx(node_model("Inverse", {"x": SQUARES}, dynamic=True))
    assert str(the_call(module).checked_type) == "Tensor[(x_0, x_1, x_2), float32]"


def test_several_outputs_attributes_and_absent_inputs() -> None:
    tokens = np.arange(6)
    inputs = {"s": tokens, "c": tokens[:3], "p": np.array(2), "q": tokens[1:]}
    model = node_model("BifurcationDetector", inputs, 2, min_ngram_size=2)
    module = from_onnx(model)
    assert domains_of(module) == {MICROSOFT}
    expected = onnxruntime_outputs(model, feeds_of(model, inputs))
    whole = PartitionWhole("cpu -toolchain=reference")(module)
    for result, array in zip(ia.build(whole)(*inputs.values()), expected, strict=True):
        np.testing.assert_array_equal(result, array)


class _Doubling:
    """A domain of one operator, as a package would declare it."""

    version = 3
    toolchains = frozenset({"torch"})
    judge = "its own rule"

    def obstacle(self) -> str | None:
        return None

    def schema(self, name: str) -> Any:
        from onnx.defs import OpSchema

        if name != "Double":
            return None
        return OpSchema(
            "Double",
            "acme",
            1,
            inputs=[OpSchema.FormalParameter("x", "T")],
            outputs=[OpSchema.FormalParameter("y", "T")],
            type_constraints=[("T", ["tensor(float)"], "")],
            attributes=[OpSchema.Attribute("times", OpSchema.AttrType.INT)],
        )

    def operators(self) -> tuple[str, ...]:
        return ("Double",)

    def infer(self, node: Any, types: Any, values: Any) -> Any:
        return (types[0],)

    def evaluate(self, node: Any, types: Any, values: Any) -> Any:
        return (values[0] * 2,)


def test_a_domain_declared_in_code() -> None:
    text = "g (float[n,3] x) => (float[n,3] y) { a = acme.Double<times = 1>(x)\n y = Neg(a) }"
    model = model_of(text, imports='"acme": 3')
    with holding_operator_domain("acme", _Doubling):
        assert is_declared("acme")
        module = from_onnx(model)
        verify(module)
        assert operator_predicate("reference")(the_call(module))
        assert not operator_predicate("onnxruntime")(the_call(module))
        whole = PartitionWhole("cpu -toolchain=reference")(module)
        np.testing.assert_array_equal(ia.build(whole)(np.ones((2, 3), np.float32)), -2 * np.ones((2, 3)))
        assert {item.domain: item.version for item in to_onnx(module).opset_import} == {"": 26, "acme": 3}
        with pytest.raises(InvalidModelError, match="has no attribute 'beta'"):
            from_onnx(model_of(text.replace("times", "beta"), imports='"acme": 3'))
    with pytest.raises(UnsupportedModelError, match="no installed package declares it"):
        from_onnx(model)


def test_a_domain_whose_engine_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from intarsia.toolchain.onnxruntime.domain import MicrosoftOperators

    monkeypatch.setattr(MicrosoftOperators, "obstacle", lambda _: "the package onnxruntime is not installed")
    assert domains_of(from_onnx(node_model("Gelu", {"x": SQUARES}))) == {""}
    with pytest.raises(UnsupportedModelError) as caught:
        opaque_module()
    assert "cannot be used here: the package onnxruntime is not installed" in str(caught.value)


def test_the_import_says_what_is_pinned_and_why() -> None:
    assert import_notes(opaque_module()) == (
        "com.microsoft::Inverse (1 node) runs on onnxruntime only: ONNX's operators do not express it",
    )
    floats = np.ones((2, 1, 32), np.float32)
    cache = np.ones((2, 2, 3, 16), np.float32)
    inputs = {"q": floats, "k": floats, "v": floats, "pk": cache, "pv": cache}
    inputs |= {"l": np.array([3, 3], np.int32), "t": np.array(4, np.int32)}
    attrs: dict[str, Any] = {
        "num_heads": 2,
        "kv_num_heads": 2,
        "local_window_size": 3,
        "sliding_window_cache": 1,
    }
    module = from_onnx(node_model("GroupQueryAttention", inputs, 3, **attrs))
    assert import_notes(module) == (
        "com.microsoft::GroupQueryAttention (1 node) runs on onnxruntime only: "
        "ONNX's operators do not express this form of it: "
        "a cache that slides with its window, or a past that is not causal",
    )
    assert import_notes(from_onnx(node_model("Gelu", {"x": SQUARES}))) == ()


def test_products_with_narrow_weights_are_exact_in_an_optimised_session() -> None:
    rng = np.random.default_rng(0)
    inputs = {
        "a": rng.standard_normal((2, 64)).astype(np.float32),
        "b": rng.integers(0, 255, (32, 2, 16)).astype(np.uint8),
        "s": rng.uniform(0.01, 0.1, 64).astype(np.float32),
    }
    attrs: dict[str, Any] = {"K": 64, "N": 32, "bits": 4, "block_size": 32, "accuracy_level": 4}
    module = from_onnx(node_model("MatMulNBits", inputs, constants=("b", "s"), **attrs))
    exact, fast = (
        ia.build(PartitionWhole(f"cpu -toolchain={toolchain}")(module))(inputs["a"])
        for toolchain in ("reference", "onnxruntime")
    )
    np.testing.assert_allclose(fast, exact, rtol=1e-5, atol=1e-5)
