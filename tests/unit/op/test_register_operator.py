"""Registered operators: names, signatures, types, values, import and export, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.onnx_models import model_of
from tests.registered_operators import (
    GATED,
    MODEL,
    Array,
    gated,
    gated_inputs,
    gated_module,
    gated_registered,
    gated_result,
    registered,
)

import intarsia as ia
from intarsia.frontend.onnx import from_onnx, import_notes, to_onnx
from intarsia.ir import Call, DType, IRModule, Op, TensorType, post_order, structural_equal
from intarsia.op import verify
from intarsia.op.opaque import declared_toolchains, is_declared, opaque_operators
from intarsia.op.operator_definition import registered_definition
from intarsia.op.operator_facts import OpPatternKind
from intarsia.op.operator_predicate import operator_predicate
from intarsia.op.operator_signature import AttributeKind, OperatorSignature
from intarsia.op.operator_table import facts_of
from intarsia.op.register_operator import define_operator, first_input_type, operator, register_operator
from intarsia.passes import PartitionWhole
from intarsia.support.errors import (
    CompileError,
    ExecutionError,
    InvalidModelError,
    UnsupportedModelError,
    UsageError,
)

TEXT = "g (float[2,3] x) => (float[2,3] y) { y = acme.Twice(x) }"


def twice(x: Array) -> Array:
    return 2 * x


def the_call(module: IRModule) -> Call:
    (call,) = (
        expr
        for expr in post_order(module["main"])
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.domain
    )
    return call


def run_by_reference(module: IRModule, *arrays: Array) -> Any:
    return ia.build(PartitionWhole("cpu -toolchain=reference")(module))(*arrays)


def test_a_model_with_a_registered_operator_is_imported_and_exported() -> None:
    with gated_registered():
        module = gated_module()
        verify(module)
        assert str(the_call(module).checked_type) == "Tensor[(4, 24), float32]"
        assert import_notes(module) == ()
        exported = to_onnx(module)
        assert {item.domain: item.version for item in exported.opset_import} == {"": 26, "acme": 1}
        assert structural_equal(from_onnx(exported)["main"], module["main"])
        (entry,) = opaque_operators(module)
        assert (entry.name, entry.calls, entry.toolchains) == (GATED, 1, ("native",))
        assert entry.is_defined
    assert not is_declared("acme")


def test_dimensions_may_be_symbolic() -> None:
    text = MODEL.replace("float[4,16]", "float[n,16]").replace("float[4,24]", "float[n,24]")
    with gated_registered():
        module = from_onnx(model_of(text, imports='"acme": 1'))
        assert str(the_call(module).checked_type) == "Tensor[(n, 24), float32]"


def test_the_reference_computes_in_a_wider_type_and_gives_the_inferred_one() -> None:
    with gated_registered():
        inputs = gated_inputs()
        result = run_by_reference(gated_module(), *inputs.values())
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, gated_result(inputs).astype(np.float32))


def test_toolchains_by_declaration() -> None:
    with gated_registered(), registered("acme::Twice", first_input_type, None, twice, toolchains=["torch"]):
        call = the_call(gated_module())
        assert operator_predicate("native")(call)
        assert operator_predicate("reference")(call)
        assert not operator_predicate("onnxruntime")(call)
        assert declared_toolchains("acme", "Gated") == {"native"}
        assert declared_toolchains("acme", "Twice") == {"torch"}
        assert declared_toolchains("acme", "Thrice") == frozenset()
        assert not operator_predicate("native")(the_call(from_onnx(model_of(TEXT, imports='"acme": 1'))))


@pytest.mark.parametrize("toolchain", ["onnxruntime", "openvino"])
def test_other_toolchains_refuse_it(toolchain: str) -> None:
    with gated_registered(), pytest.raises(CompileError) as caught:
        ia.build(PartitionWhole(f"cpu -toolchain={toolchain}")(gated_module()))
    assert caught.value.problem == (
        f"{toolchain} cannot compile this: operator 'acme::Gated' is registered for native only"
    )


def test_native_refuses_an_operator_without_compute_rule() -> None:
    with registered("acme::Twice", first_input_type, None, twice), pytest.raises(CompileError) as caught:
        ia.build(PartitionWhole("cpu -toolchain=native")(from_onnx(model_of(TEXT, imports='"acme": 1'))))
    assert caught.value.problem == (
        "native cannot compile this: operator 'acme::Twice' is registered for the reference only"
    )


def test_the_signature_declares_inputs_and_attributes() -> None:
    def function(
        x: Array,
        bias: Array | None = None,
        *,
        axis: int,
        scale: float = 1.0,
        mode: str = "fast",
        pads: tuple[int, ...] = (),
        steps: tuple[float, ...] = (0.5,),
    ) -> None:
        del x, bias, axis, scale, mode, pads, steps

    signature = OperatorSignature.of(function, "acme::F")
    assert (signature.inputs, signature.required) == (("x", "bias"), 1)
    assert {name: formal.kind for name, formal in signature.attributes.items()} == {
        "axis": AttributeKind.INT,
        "scale": AttributeKind.FLOAT,
        "mode": AttributeKind.STRING,
        "pads": AttributeKind.INTS,
        "steps": AttributeKind.FLOATS,
    }
    assert signature.positional([1]) == [1, None]
    assert signature.keywords({"axis": 1, "scale": 2}, "acme::F") == {
        "axis": 1,
        "scale": 2,
        "mode": "fast",
        "pads": (),
        "steps": (0.5,),
    }
    with pytest.raises(InvalidModelError, match=r"'acme::F' lacks its attribute 'axis'"):
        signature.keywords({}, "acme::F")
    with pytest.raises(InvalidModelError, match=r"'acme::F' has axis=0.5, expected INT"):
        signature.keywords({"axis": 0.5}, "acme::F")
    with pytest.raises(InvalidModelError, match=r"'acme::F' has no attribute 'beta'"):
        signature.keywords({"beta": 1}, "acme::F")


def test_a_signature_that_is_none_of_an_operator() -> None:
    with pytest.raises(UsageError, match=r"operator 'acme::F' cannot have the parameter \*xs"):
        OperatorSignature.of(lambda *xs: xs, "acme::F")
    with pytest.raises(UsageError, match=r"input 'x' of operator 'acme::F' has the default 1, expected none"):
        OperatorSignature.of(lambda x=1: x, "acme::F")
    with pytest.raises(UsageError, match=r"attribute 'a' of operator 'acme::F' has no type"):
        OperatorSignature.of(lambda x, *, a: (x, a), "acme::F")


@pytest.mark.parametrize("name", ["Gated", "acme:Gated", "acme::", "::Gated", "acme::Gated Unit"])
def test_a_name_needs_a_domain(name: str) -> None:
    with pytest.raises(UsageError, match="an operator cannot be named"):
        define_operator(name, first_input_type, None, twice)


@pytest.mark.parametrize("domain", ["intarsia", "ai.onnx.ml", "com.microsoft"])
def test_domains_of_others_are_taken(domain: str) -> None:
    with pytest.raises(UsageError, match=f"the domain '{domain}' is taken"):
        define_operator(f"{domain}::Twice", first_input_type, None, twice)


def test_an_operator_is_registered_once() -> None:
    name = "acme.once::Twice"
    assert operator(name)(twice) is twice
    register_operator(name, first_input_type, None, twice)  # as in a cell that is run again
    with pytest.raises(UsageError, match=r"operator 'acme.once::Twice' is already registered"):
        register_operator(name, first_input_type, None, gated)
    definition = registered_definition(name)
    assert definition is not None
    assert (definition.reference, definition.infer, definition.toolchains) == (
        twice,
        first_input_type,
        frozenset(),
    )


def test_several_outputs_and_an_optional_input() -> None:
    def halves(x: Array, bias: Array | None = None) -> tuple[Array, Array]:
        total = x if bias is None else x + bias
        return total[:, :2], total[:, 2:]

    def infer(x: TensorType, bias: TensorType | None = None) -> tuple[TensorType, TensorType]:
        del bias
        assert x.shape is not None
        return TensorType((x.shape[0], 2), x.dtype), TensorType((x.shape[0], 2), x.dtype)

    text = """g (float[3,4] x, float[4] b) => (float[3,2] y, float[3,2] z, float[3,2] u) {{
        y, z = acme.Halves(x)
        u = acme.Halves(x{second})
    }}"""
    x, b = np.arange(12, dtype=np.float32).reshape(3, 4), np.ones(4, np.float32)
    with registered("acme::Halves", infer, None, halves, outputs=["left", "right"]):
        module = from_onnx(model_of(text.format(second=", b"), imports='"acme": 1'))
        y, z, u = run_by_reference(module, x, b)
        np.testing.assert_array_equal(np.hstack([y, z]), x)
        np.testing.assert_array_equal(u, x[:, :2] + 1)
        with pytest.raises(InvalidModelError, match="has 3 inputs, expected 1 to 2"):
            from_onnx(model_of(text.format(second=", b, b"), imports='"acme": 1'))


def test_the_fusion_kind_is_a_fact_of_the_operator() -> None:
    with registered("acme::Twice", first_input_type, None, twice, fusion=OpPatternKind.ELEMWISE):
        assert facts_of(Op("Twice", "acme")).fusion is OpPatternKind.ELEMWISE
        assert facts_of(Op("Other", "acme")).fusion is OpPatternKind.OPAQUE
    assert facts_of(Op("Twice", "acme")).fusion is OpPatternKind.OPAQUE


def test_an_unregistered_domain_or_operator() -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        gated_module()
    assert caught.value.problem == (
        "node 'h' uses the operator 'Gated' of the domain 'acme', which is not one of ONNX's, "
        "and no installed package declares it"
    )
    with gated_registered():
        model = model_of(MODEL.replace("acme.Gated", "acme.Gate"), imports='"acme": 1')
        with pytest.raises(InvalidModelError, match="unknown operator 'Gate'") as unknown:
            from_onnx(model)
    assert unknown.value.help == "did you mean Gated?"


def refuse(*_: Any, **__: Any) -> Any:
    raise ValueError("sizes differ")


def wrong_type(*_: Any, **__: Any) -> Any:
    return (4, 24)


def wide(x: TensorType, *_: Any, **__: Any) -> TensorType:
    return TensorType(x.shape, DType.FLOAT32)


def test_an_inference_that_raises() -> None:
    with gated_registered(infer=refuse), pytest.raises(InvalidModelError) as caught:
        gated_module()
    assert caught.value.problem == (
        "operator 'acme::Gated' cannot be applied to (Tensor[(4, 16), float32], Tensor[(16, 24), float32], "
        "Tensor[(16, 24), float32]): infer raises ValueError: sizes differ"
    )
    assert "at node 'h' (Gated)" in str(caught.value)


def test_an_inference_that_returns_no_types() -> None:
    with gated_registered(infer=lambda *_, **__: 4), pytest.raises(UsageError) as caught:
        gated_module()
    assert caught.value.problem == "infer of operator 'acme::Gated' returns 4, expected a TensorType"
    with gated_registered(infer=wrong_type), pytest.raises(UsageError, match="returns 2 values"):
        gated_module()


def test_a_reference_that_raises_or_contradicts_the_inference() -> None:
    inputs = gated_inputs().values()
    with gated_registered(reference=lambda x, gate, up, *, alpha=1.0: refuse()):
        module = gated_module()
        with pytest.raises(ExecutionError, match="the reference of operator 'acme::Gated' raises ValueError"):
            run_by_reference(module, *inputs)
    with gated_registered(infer=wide):
        text = MODEL.replace("float[4,24]", "float[4,16]")
        module = from_onnx(model_of(text, imports='"acme": 1'))
        with pytest.raises(ExecutionError, match=r"returns float64 \(4, 24\), and its infer says Tensor"):
            run_by_reference(module, *inputs)
