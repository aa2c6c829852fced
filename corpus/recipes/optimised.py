"""Models after onnxruntime's optimisers, which write operators of its own domain."""

from __future__ import annotations

from pathlib import Path

from corpus.draw import Draw
from corpus.inputs import image
from corpus.recipe import BuiltModel, recipe
from corpus.recipes.narrow_types import small_cnn, through_files
from corpus.recipes.text import decoder, encoder

FAMILY = "optimised by onnxruntime"


def _fused(built: BuiltModel, kind: str, heads: int, hidden: int, quantised: bool = False) -> BuiltModel:
    """Return a transformer after onnxruntime's fusions, optionally followed by dynamic quantisation."""
    from onnx import TensorProto
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.transformers import optimizer

    def convert(before: Path, after: Path) -> None:
        model = optimizer.optimize_model(
            str(before), model_type=kind, num_heads=heads, hidden_size=hidden, opt_level=0
        )
        model.save_model_to_file(str(after))
        if quantised:
            types = {"DefaultTensorType": TensorProto.FLOAT}  # onnx cannot infer types after fused operators
            quantize_dynamic(str(after), str(after), extra_options=types)

    return through_files(built, convert)


def _heads(draw: Draw) -> tuple[int, int]:
    heads, head = draw.choose("heads", 4, 2, 3), draw.choose("head", 16, 12, 32)
    return heads, heads * head


@recipe(FAMILY, "onnxruntime", "com.microsoft", "fused attention", "fused embeddings")
def fused_bert(draw: Draw) -> BuiltModel:
    built = encoder(draw, "Bert", 14, script=True, types=True, dynamic=True)
    heads = draw.drawn["heads"]
    return _fused(built, "bert", heads, heads * draw.drawn["head"])


@recipe(FAMILY, "onnxruntime", "com.microsoft", "quantised attention")
def fused_quantised_bert(draw: Draw) -> BuiltModel:
    built = encoder(draw, "Bert", 14, script=True, types=True)
    heads = draw.drawn["heads"]
    return _fused(built, "bert", heads, heads * draw.drawn["head"], quantised=True)


@recipe(FAMILY, "onnxruntime", "com.microsoft", "fused layer norm", "fast GELU")
def fused_gpt2(draw: Draw) -> BuiltModel:
    built = decoder(draw, "GPT2", 14, script=True)
    heads = draw.drawn["heads"]
    return _fused(built, "gpt2", heads, heads * draw.drawn["head"])


@recipe(FAMILY, "onnxruntime", "com.microsoft", "fused attention")
def fused_vit(draw: Draw) -> BuiltModel:
    import timm

    from corpus.exporting import export

    heads, width = _heads(draw)
    model = timm.create_model(
        "vit_tiny_patch16_224", img_size=64, depth=2, num_heads=heads, embed_dim=width, num_classes=10
    )
    built = export(draw, model, {"image": image(draw, 1, 3, 64, 64)}, ["logits"], opset=17, script=True)
    return _fused(built, "vit", heads, width)


def _session(built: BuiltModel, level: str) -> BuiltModel:
    """Return the model that a session of onnxruntime writes after its own optimisations."""
    import onnxruntime

    def convert(before: Path, after: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.optimized_model_filepath = str(after)
        onnxruntime.InferenceSession(before, options, providers=["CPUExecutionProvider"])

    return through_files(built, convert)


@recipe(FAMILY, "onnxruntime", "com.microsoft", "fused convolutions")
def extended_cnn(draw: Draw) -> BuiltModel:
    return _session(small_cnn(draw, 17), "ORT_ENABLE_EXTENDED")


@recipe(FAMILY, "onnxruntime", "com.microsoft", "fused products and activations")
def extended_electra(draw: Draw) -> BuiltModel:
    return _session(encoder(draw, "Electra", 17, script=True, embedding_size=24), "ORT_ENABLE_EXTENDED")


@recipe(FAMILY, "onnxruntime", "basic optimisations")
def basic_llama(draw: Draw) -> BuiltModel:
    return _session(decoder(draw, "Llama", 17, script=True, num_key_value_heads=2), "ORT_ENABLE_BASIC")
