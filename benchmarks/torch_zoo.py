"""Twenty models of torchvision, timm and transformers with random weights, for benchmarks.torch_models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final


@dataclass(frozen=True)
class TorchCase:
    """A model in evaluation mode with the inputs of a call, all of them tensors.

    Attributes:
        model: Module that takes the inputs by position and returns a tensor or a tuple of tensors.
        inputs: The inputs.
    """

    model: Any
    inputs: tuple[Any, ...]


def build_case(name: str) -> TorchCase:
    """Return a model of `MODELS` with seeded weights and inputs."""
    import torch
    from corpus.torch_packages import torchvision

    torchvision()  # timm and transformers import it, which fails without its operators
    torch.manual_seed(0)
    case = MODELS[name]()
    case.model.eval()
    with torch.no_grad():  # some heads start as zeros, and a result of zeros says nothing
        for parameter in case.model.parameters():
            if parameter.ndim > 1 and not parameter.any():
                parameter.normal_(std=0.02)
    return case


def _image_model(library: str, name: str, size: int = 224) -> TorchCase:
    import torch
    from corpus.torch_packages import torchvision

    models = torchvision().models
    if library == "timm":
        import timm

        return TorchCase(timm.create_model(name), (torch.randn(1, 3, size, size),))
    return TorchCase(getattr(models, name)(), (torch.randn(1, 3, size, size),))


def _text_model(model: str, config: str, tokens: int = 64, **options: Any) -> TorchCase:
    import torch
    import transformers

    settings = getattr(transformers, config)(**options)
    module = getattr(transformers, model)(settings)
    ids = torch.randint(0, settings.vocab_size, (1, tokens))
    return TorchCase(_first_result(module, "input_ids"), (ids,))


def _speech_model() -> TorchCase:
    import torch
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    settings = transformers.WhisperConfig(encoder_layers=4, d_model=384, encoder_attention_heads=6)
    return TorchCase(_first_result(WhisperEncoder(settings), "input_features"), (torch.randn(1, 80, 3000),))


def _clip_model() -> TorchCase:
    import torch
    import transformers

    module = transformers.CLIPVisionModel(transformers.CLIPVisionConfig())
    return TorchCase(_first_result(module, "pixel_values"), (torch.randn(1, 3, 224, 224),))


def _first_result(module: Any, name: str) -> Any:
    """A module of transformers as one that takes a tensor and returns the first result."""
    from corpus.exporting import Positional

    has_cache = name == "input_ids" and hasattr(module.config, "use_cache")
    options = {"use_cache": False} if has_cache else {}
    return Positional(module, [name], lambda result: result[0], return_dict=False, **options)


_DECODER: Final = {
    "hidden_size": 512,
    "intermediate_size": 1376,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
}

MODELS: Final[dict[str, Callable[[], TorchCase]]] = {
    **{
        name: partial(_image_model, "torchvision", name)
        for name in (
            *("resnet18", "resnet50", "mobilenet_v3_large", "efficientnet_b0", "densenet121"),
            *("convnext_tiny", "swin_t"),
        )
    },
    **{
        name: partial(_image_model, "timm", name)
        for name in (
            *("vit_tiny_patch16_224", "deit_small_patch16_224", "mixer_s16_224"),
            *("regnety_008", "mobilevit_s", "ghostnet_100"),
        )
    },
    "bert_base": partial(_text_model, "BertModel", "BertConfig"),
    "distilbert": partial(_text_model, "DistilBertModel", "DistilBertConfig"),
    "gpt2": partial(_text_model, "GPT2LMHeadModel", "GPT2Config"),
    "llama": partial(_text_model, "LlamaForCausalLM", "LlamaConfig", **_DECODER),
    "t5_encoder": partial(_text_model, "T5EncoderModel", "T5Config"),
    "whisper_encoder": _speech_model,
    "clip_vision": _clip_model,
}
