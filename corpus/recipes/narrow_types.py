"""Other element types: float16, bfloat16, and quantised weights and activations in every usual form."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpus.draw import Draw
from corpus.inputs import image, prefix_mask, tokens
from corpus.recipe import BuiltModel, recipe
from corpus.recipes.text import decoder, encoder

FLOATS, QUANTISED = "float16 and bfloat16", "quantised"


def small_cnn(draw: Draw, opset: int, half: Any = None, script: bool = True) -> BuiltModel:
    """Export a small residual network with depthwise convolutions."""
    import timm

    from corpus.exporting import export

    width = draw.choose("width", 16, 8, 24)
    model = timm.create_model(
        "resnet18",
        num_classes=10,
        layers=(1, 1, 1, 1),
        channels=(width, 2 * width, 2 * width, 4 * width),
        stem_width=width,
    )
    return export(
        draw, model, {"image": image(draw, 1, 3, 64, 64)}, ["logits"], opset=opset, script=script, half=half
    )


def through_files(built: BuiltModel, convert: Callable[[Path, Path], object]) -> BuiltModel:
    """Convert a model with a tool that reads a file and writes another."""
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        onnx.save(built.proto, before)
        convert(before, after)
        return BuiltModel(onnx.load(after), built.inputs)


@recipe(FLOATS, "torch script", "float16 weights and inputs")
def half_cnn(draw: Draw) -> BuiltModel:
    import torch

    return small_cnn(draw, 17, half=torch.float16)


@recipe(FLOATS, "onnxconverter", "float16 weights, float32 borders")
def half_bert(draw: Draw) -> BuiltModel:
    from onnxconverter_common.float16 import convert_float_to_float16

    built = encoder(draw, "Bert", 16, script=True, types=True)
    return BuiltModel(convert_float_to_float16(built.proto, keep_io_types=True), built.inputs)


@recipe(FLOATS, "torch dynamo", "bfloat16 weights")
def bfloat16_llama(draw: Draw) -> BuiltModel:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from corpus.exporting import export
    from corpus.networks.cached_decoder import PlainDecoder

    config = LlamaConfig(
        vocab_size=300,
        hidden_size=64,
        num_hidden_layers=draw.choose("layers", 1, 2),
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=128,
        max_position_embeddings=64,
        attn_implementation="eager",
    )
    inputs = {"input_ids": tokens(draw, 2, 10, 300), "attention_mask": prefix_mask(draw, 2, 10)}
    return export(
        draw, PlainDecoder(LlamaForCausalLM(config)), inputs, ["logits"], opset=18, half=torch.bfloat16
    )


class _Images:
    """Calibration data of a quantiser."""

    def __init__(self, draw: Draw, count: int, name: str, shape: tuple[int, ...]) -> None:
        self.batches = iter([{name: image(draw, *shape)} for _ in range(count)])

    def get_next(self) -> Any:
        return next(self.batches, None)


def _static(draw: Draw, form: str, **options: Any) -> BuiltModel:
    from onnxruntime.quantization import QuantFormat, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    built = small_cnn(draw, 17)

    def convert(before: Path, after: Path) -> None:
        ready = before.with_name("ready.onnx")
        quant_pre_process(str(before), str(ready))
        images = _Images(draw, 3, "image", (1, 3, 64, 64))
        quantize_static(str(ready), str(after), images, quant_format=QuantFormat[form], **options)

    return through_files(built, convert)


@recipe(QUANTISED, "onnxruntime", "QDQ", "per channel")
def qdq_cnn(draw: Draw) -> BuiltModel:
    return _static(draw, "QDQ", per_channel=draw.choose("per channel", True, False))


@recipe(QUANTISED, "onnxruntime", "QOperator")
def qoperator_cnn(draw: Draw) -> BuiltModel:
    from onnxruntime.quantization import QuantType

    kind = draw.choose("activations", QuantType.QUInt8, QuantType.QInt8)
    return _static(draw, "QOperator", activation_type=kind, weight_type=QuantType.QInt8)


@recipe(QUANTISED, "onnxruntime", "QDQ", "16-bit activations")
def qdq_int16_cnn(draw: Draw) -> BuiltModel:
    from onnxruntime.quantization import QuantType

    return _static(draw, "QDQ", activation_type=QuantType.QUInt16, weight_type=QuantType.QInt8)


def _dynamic(built: BuiltModel, **options: Any) -> BuiltModel:
    from onnxruntime.quantization import quantize_dynamic

    return through_files(built, lambda before, after: quantize_dynamic(str(before), str(after), **options))


@recipe(QUANTISED, "onnxruntime", "dynamic quantisation")
def dynamic_bert(draw: Draw) -> BuiltModel:
    return _dynamic(encoder(draw, "Bert", 17, script=True, types=True))


@recipe(QUANTISED, "onnxruntime", "dynamic quantisation", "per channel", "signed weights")
def dynamic_gpt2(draw: Draw) -> BuiltModel:
    from onnxruntime.quantization import QuantType

    return _dynamic(decoder(draw, "GPT2", 17, script=True), per_channel=True, weight_type=QuantType.QInt8)


@recipe(QUANTISED, "onnxruntime", "dynamic quantisation", "LSTM")
def dynamic_lstm(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.sequences import BidirectionalCtc

    model = BidirectionalCtc(draw.choose("width", 40, 24), "LSTM")
    built = export(
        draw, model, {"spectrogram": draw.normal(1, 1, 40, 30)}, ["letters"], opset=13, script=True
    )
    return _dynamic(built)


def _blocked(draw: Draw, form: str, bits: int = 4) -> BuiltModel:
    """Quantise the weights of matrix products in blocks."""
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import (
        DefaultWeightOnlyQuantConfig,
        MatMulNBitsQuantizer,
    )

    built = decoder(draw, "Llama", 21, script=False, num_key_value_heads=2)
    config = DefaultWeightOnlyQuantConfig(
        block_size=draw.choose("block", 32, 16),
        is_symmetric=draw.choose("symmetric", False, True),
        quant_format=QuantFormat[form],
        bits=bits,
        accuracy_level=0,
    )
    quantizer = MatMulNBitsQuantizer(built.proto, algo_config=config)
    quantizer.process()
    return BuiltModel(quantizer.model.model, built.inputs)


@recipe(QUANTISED, "onnxruntime", "4-bit weights", "com.microsoft")
def int4_llama(draw: Draw) -> BuiltModel:
    return _blocked(draw, "QOperator")


@recipe(QUANTISED, "onnxruntime", "4-bit weights", "blocked QDQ")
def int4_qdq_llama(draw: Draw) -> BuiltModel:
    return _blocked(draw, "QDQ")
