"""Decoders of onnxruntime-genai's model builder: attention and its cache are one operator of onnxruntime."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from corpus.draw import Draw
from corpus.inputs import tokens
from corpus.recipe import BuiltModel, recipe

FAMILY = "text decoders"
VOCABULARY = 200


def _decoder(draw: Draw, name: str, precision: str = "fp32", **options: Any) -> BuiltModel:
    """Build a small decoder with random weights, and inputs for a step behind some tokens."""
    import onnx
    import torch
    import transformers

    heads, shared, size = draw.choose("heads", 4, 8), draw.choose("shared", 2, 1), 16
    torch.manual_seed(draw.seed % 2**31)
    config = getattr(transformers, f"{name}Config")(
        **{
            "vocab_size": VOCABULARY,
            "hidden_size": heads * size,
            "intermediate_size": draw.choose("middle", 160, 96),
            "num_hidden_layers": draw.choose("layers", 2, 1),
            "num_attention_heads": heads,
            "num_key_value_heads": shared,
            "max_position_embeddings": 128,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
        }
        | options
    )
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "source", Path(folder) / "target"
        model.save_pretrained(source)
        _save_tokenizer(source)
        _run_builder(source, target, precision)
        proto = onnx.load(target / "model.onnx")
    before, steps = draw.choose("past", 7, 12), draw.choose("steps", 1, 3)
    inputs = {
        "input_ids": tokens(draw, 1, steps, VOCABULARY),
        "attention_mask": np.ones((1, before + steps), np.int64),
    }
    states = [item.name for item in proto.graph.input if item.name.startswith("past")]
    inputs |= {name: draw.normal(1, shared, before, size) for name in states}
    return BuiltModel(proto, {item.name: inputs[item.name] for item in proto.graph.input})


def _save_tokenizer(folder: Path) -> None:
    """Write a tokenizer of one word for each token, which the builder copies."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({f"w{index}": index for index in range(VOCABULARY)}, unk_token="w0"))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="w0", bos_token="w1", eos_token="w2", pad_token="w0"
    )
    fast.save_pretrained(folder)


def _run_builder(source: Path, target: Path, precision: str) -> None:
    import onnxruntime_genai.models

    sys.path.insert(0, onnxruntime_genai.models.__path__[0])  # its modules import each other by bare names
    from builder import create_model, parse_extra_options

    cache = str(target.with_name("cache"))
    exact = (
        ["accuracy_level=1"] if precision == "int4" else []
    )  # otherwise onnxruntime rounds what it multiplies with to 8 bits
    options = parse_extra_options("decoder", str(source), str(target), precision, "cpu", cache, exact)
    create_model("decoder", str(source), str(target), precision, "cpu", cache, **options)


@recipe(FAMILY, "onnxruntime-genai", "com.microsoft", "past keys and values", "grouped attention")
def genai_llama(draw: Draw) -> BuiltModel:
    return _decoder(draw, "Llama")


@recipe(FAMILY, "onnxruntime-genai", "com.microsoft", "past keys and values", "query and key norms")
def genai_qwen3(draw: Draw) -> BuiltModel:
    return _decoder(draw, "Qwen3", head_dim=16)


@recipe(FAMILY, "onnxruntime-genai", "com.microsoft", "past keys and values", "attention with biases")
def genai_qwen2(draw: Draw) -> BuiltModel:
    return _decoder(draw, "Qwen2")


@recipe(FAMILY, "onnxruntime-genai", "com.microsoft", "past keys and values", "4-bit weights")
def genai_int4_llama(draw: Draw) -> BuiltModel:
    return _decoder(draw, "Llama", "int4")
