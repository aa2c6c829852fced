"""Models of PyTorch as programs: results, spans, shapes, weights, and errors for people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import intarsia as ia
from intarsia.frontend.onnx import import_notes
from intarsia.ir import Constant, IRModule, TensorType, post_order
from intarsia.passes import partition_whole
from intarsia.support.errors import UnsupportedModelError, UsageError

pytest.importorskip("torch", reason="torch is an extra: pip install 'intarsia[torch]'")
pytest.importorskip("onnxscript", reason="onnxscript comes with the extra torch")

import torch
from tests import torch_modules

from intarsia.frontend.torch.torch_importer import import_torch


def run(module: IRModule, *inputs: Any) -> list[Any]:
    return ia.build(partition_whole(module, ia.Target.for_toolchain("onnxruntime"))).run_flat(*inputs)


def spans(module: IRModule) -> set[str]:
    return {expr.span.node for expr in post_order(module["main"].body) if expr.span is not None}


def constants(module: IRModule) -> dict[str, Constant]:
    return {
        expr.span.node: expr
        for expr in post_order(module["main"].body)
        if isinstance(expr, Constant) and expr.span is not None
    }


def test_results_equal_those_of_pytorch() -> None:
    model, x = torch_modules.Encoder().eval(), torch.randn(2, 5, 16)
    (y,) = run(ia.from_torch(model, (x,)), x)
    np.testing.assert_allclose(y, model(x).detach(), rtol=1e-4, atol=1e-5)


def test_spans_name_modules_and_parameters() -> None:
    module = ia.from_torch(torch_modules.Encoder().eval(), torch.randn(2, 5, 16))
    names = spans(module)
    assert {"layers.1.attn.qkv.weight", "layers.1.norm.bias", "layers.0.attn.qkv/linear"} <= names
    assert any(name.startswith("layers.1.attn/scaled_dot_product_attention") for name in names)
    assert module.attrs["name"] == "Encoder"


def test_dynamic_dimensions_stay_symbolic() -> None:
    model, x = torch_modules.Encoder().eval(), torch.randn(2, 5, 16)
    module = ia.from_torch(model, (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    shape = module["main"].params[0].checked_type
    assert isinstance(shape, TensorType)
    assert shape.shape is not None
    assert (isinstance(shape.shape[0], int), shape.shape[1:]) == (False, (5, 16))
    other = torch.randn(3, 5, 16)
    (y,) = run(module, other)
    np.testing.assert_allclose(y, model(other).detach(), rtol=1e-4, atol=1e-5)


def test_inputs_by_name_and_results_by_name() -> None:
    module = ia.from_torch(torch_modules.Named(), {"x": torch.ones(2), "scale": torch.full((2,), 3.0)})
    assert module["main"].attrs["output_names"] == ("scaled", "total")
    scaled, total = run(module, np.ones(2, np.float32), np.full(2, 3, np.float32))
    assert (scaled.tolist(), float(total)) == ([3, 3], 2)


def test_attention_of_pytorch_is_imported_by_its_parts() -> None:
    model, x = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.randn(2, 3, 8)
    (y,) = run(ia.from_torch(model, x), x)
    np.testing.assert_allclose(y, model(x).detach(), rtol=1e-4, atol=1e-5)
    assert torch.backends.mha.get_fastpath_enabled()


def test_exported_programs_and_onnx_programs_are_models_too() -> None:
    model, x = torch_modules.linear(), torch.randn(2, 8)
    exported = torch.export.export(model, (x,))
    program = torch.onnx.export(exported, dynamo=True, verbose=False)
    for given in (exported, program):
        (y,) = run(ia.from_torch(given), x)
        np.testing.assert_allclose(y, model(x).detach(), rtol=1e-4, atol=1e-5)


def test_weights_are_copied_once() -> None:
    model = torch_modules.linear()
    weight = model[0].weight
    before = weight.detach().numpy().copy()
    module = ia.from_torch(model, torch.randn(2, 8))
    constant = constants(module)["0.weight"].data
    with torch.no_grad():
        weight.zero_()
    np.testing.assert_array_equal(constant, before)
    assert constant.ctypes.data % 64 == 0


def test_a_module_that_writes_to_a_buffer_is_imported_with_a_note() -> None:
    module = ia.from_torch(torch_modules.Counter().eval(), torch.randn(2, 4))
    assert import_notes(module) == ("the model writes to calls; its program leaves them as they are",)


def test_bfloat16_goes_in_and_out_by_dlpack() -> None:
    model, x = torch_modules.linear().bfloat16(), torch.randn(2, 8).bfloat16()
    exe = ia.build(partition_whole(ia.from_torch(model, x), ia.Target.for_toolchain("native")))
    y = torch.from_dlpack(ia.to_dlpack(exe(x)))
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y, model(x).detach(), rtol=0.05, atol=0.05)


def test_example_inputs_have_the_names_of_parameters() -> None:
    x, scale = torch.ones(2), torch.full((2,), 3.0)
    imported = import_torch(torch_modules.Named(), (x,), example_kwargs={"scale": scale})
    names = [param.name for param in imported.module["main"].params]
    assert [imported.inputs[name].tolist() for name in names] == [[1, 1], [3, 3]]


@pytest.mark.parametrize(
    ("layer", "complaint"),
    [
        ("drop", "drop (dropout) is in training mode: it drops elements at random"),
        ("norm", "norm (batch_norm) is in training mode: it normalizes by the batch"),
    ],
)
def test_training_mode_is_refused_with_the_module(layer: str, complaint: str) -> None:
    model = torch_modules.Regularised().eval()
    getattr(model, layer).train()
    with pytest.raises(UsageError) as caught:
        ia.from_torch(model, torch.randn(3, 4))
    assert caught.value.problem.startswith(complaint)
    assert caught.value.help == "call model.eval() first: programs are for inference"


def test_training_mode_without_an_effect_is_taken() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.0)).train()
    ia.from_torch(model, torch.randn(3, 4))


def test_an_unsupported_operator_is_named_with_its_module() -> None:
    complaint = r"cannot convert the operator aten\._linalg_eigh\.default of module inner"
    with pytest.raises(UnsupportedModelError, match=complaint):
        ia.from_torch(torch_modules.Eigenvalues(), torch.randn(4, 4))


def test_control_flow_on_values_is_refused_with_advice() -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        ia.from_torch(torch_modules.Branching(), torch.randn(2, 4))
    assert caught.value.problem.startswith("the control flow of Branching depends on values of tensors")
    assert "torch.cond" in caught.value.help


def test_a_module_needs_example_inputs() -> None:
    with pytest.raises(UsageError, match="needs example inputs"):
        ia.from_torch(torch_modules.linear())


def test_other_values_are_refused() -> None:
    with pytest.raises(UsageError, match="found str"):
        ia.from_torch("model.pt", torch.randn(2))
