"""Architectures of torchvision, timm and transformers, small and with random weights, against eager mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is an extra: pip install 'intarsia[torch]'")
pytest.importorskip("onnxscript", reason="onnxscript comes with the extra torch")
if find_spec("timm") is None:  # not imported: timm imports torchvision, which needs its operators first
    pytest.skip("libraries of models are installed by `make torch` only", allow_module_level=True)

import torch
from corpus.torch_packages import torchvision

import intarsia as ia
from intarsia.passes import partition_whole


@dataclass(frozen=True)
class Case:
    """A model with the arguments of a call."""

    model: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] | None = None


def of_torchvision(name: str, **options: Any) -> Case:
    models = torchvision().models
    return Case(getattr(models, name)(num_classes=10, **options), (torch.randn(1, 3, 64, 64),))


def of_timm(name: str, **options: Any) -> Case:
    torchvision()
    import timm

    return Case(timm.create_model(name, num_classes=10, **options), (torch.randn(1, 3, 64, 64),))


def of_transformers(name: str, **options: Any) -> Case:
    torchvision()
    import transformers

    config = getattr(transformers, f"{name}Config")(vocab_size=100, **options)
    kind = {"Bert": "BertModel", "GPT2": "GPT2LMHeadModel", "Llama": "LlamaForCausalLM"}[name]
    tokens = torch.randint(0, 100, (1, 12))
    return Case(getattr(transformers, kind)(config), (), {"input_ids": tokens, "use_cache": False})


WIDTHS = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
CASES: dict[str, Callable[[], Case]] = {
    "mobilenet": lambda: of_torchvision("mobilenet_v3_small"),
    "resnet": lambda: of_timm("resnet10t"),
    "vit": lambda: of_timm("vit_tiny_patch16_224", img_size=64, depth=2),
    "bert": lambda: of_transformers("Bert", **WIDTHS),
    "gpt2": lambda: of_transformers("GPT2", n_embd=32, n_layer=2, n_head=4),
    "llama": lambda: of_transformers("Llama", num_key_value_heads=2, **WIDTHS),
}


def build(name: str) -> Case:
    torch.manual_seed(0)
    case = CASES[name]()
    case.model.eval()
    return case


def tensors(result: Any) -> list[Any]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def assert_equal(actual: Any, expected: Any) -> None:
    for left, right in zip(tensors(actual), tensors(expected), strict=True):
        scale = float(right.abs().max())
        torch.testing.assert_close(left, right, rtol=1e-3, atol=1e-4 * scale)


@pytest.mark.parametrize("name", CASES)
def test_compiled_results_equal_those_of_eager_mode(name: str) -> None:
    case = build(name)
    kwargs = case.kwargs or {}
    with torch.no_grad():
        expected = case.model(*case.args, **kwargs)
        torch.compiler.reset()
        fast = torch.compile(case.model, backend="intarsia", options={"strict": True, "database": False})
        for _ in range(2):
            assert_equal(fast(*case.args, **kwargs), expected)


@pytest.mark.parametrize("name", ["resnet", "llama"])
def test_imported_results_equal_those_of_eager_mode(name: str) -> None:
    case = build(name)
    kwargs = case.kwargs or {}
    with torch.no_grad():
        expected = case.model(*case.args, **kwargs)
    module = ia.from_torch(case.model, case.args, example_kwargs=kwargs)
    exe = ia.build(partition_whole(module, ia.Target.for_toolchain("onnxruntime")))
    inputs = [*case.args, *(value for value in kwargs.values() if isinstance(value, torch.Tensor))]
    results = [torch.from_numpy(array) for array in exe.run_flat(*inputs)]
    assert_equal(results, expected)
