"""Text: small encoders, and decoders with and without past keys and values, of transformers."""

from __future__ import annotations

from typing import Any

from corpus.draw import Draw
from corpus.inputs import prefix_mask, tokens
from corpus.recipe import BuiltModel, recipe

ENCODERS, DECODERS, SEQ2SEQ = "text encoders", "text decoders", "text to text"
VOCABULARY = 300


def encoder(
    draw: Draw,
    name: str,
    opset: int,
    script: bool = False,
    types: bool = False,
    dynamic: bool = False,
    **options: Any,
) -> BuiltModel:
    """Export an encoder for padded texts."""
    import transformers

    from corpus.exporting import Positional, export

    heads = draw.choose("heads", 4, 2, 3)
    length = draw.choose("length", 24, 17, 40)
    sizes: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": heads * draw.choose("head", 16, 12, 32),
        "num_hidden_layers": draw.choose("layers", 2, 1, 3),
        "num_attention_heads": heads,
        "intermediate_size": draw.choose("middle", 128, 96),
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "attn_implementation": draw.choose("attention", "eager", "sdpa")
        if "attn" not in options
        else options.pop("attn"),
    }
    config = getattr(transformers, f"{name}Config")(**sizes | options)
    inputs = {
        "input_ids": tokens(draw, 2, length, VOCABULARY),
        "attention_mask": prefix_mask(draw, 2, length),
    }
    if types:
        inputs["token_type_ids"] = 1 - prefix_mask(draw, 2, length)
    model = getattr(transformers, f"{name}Model")(config)
    wrapped = Positional(model, list(inputs), lambda result: result.last_hidden_state)
    axes = {key: {0: "batch", 1: "length"} for key in inputs} if dynamic else None
    return export(draw, wrapped, inputs, ["hidden"], opset=opset, script=script, dynamic=axes)


@recipe(ENCODERS, "torch dynamo", "attention")
def bert(draw: Draw) -> BuiltModel:
    return encoder(draw, "Bert", 18, types=True)


@recipe(ENCODERS, "torch script", "attention", "dynamic axes")
def bert_dynamic(draw: Draw) -> BuiltModel:
    return encoder(draw, "Bert", 14, script=True, types=True, dynamic=True)


@recipe(ENCODERS, "torch script", "attention")
def distilbert(draw: Draw) -> BuiltModel:
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    from corpus.exporting import Positional, export

    config = DistilBertConfig(
        vocab_size=VOCABULARY,
        dim=64,
        n_layers=draw.choose("layers", 2, 1),
        n_heads=draw.choose("heads", 4, 2),
        hidden_dim=128,
        max_position_embeddings=64,
        attn_implementation="eager",
    )
    inputs = {"input_ids": tokens(draw, 2, 20, VOCABULARY), "attention_mask": prefix_mask(draw, 2, 20)}
    model = Positional(
        DistilBertForSequenceClassification(config), list(inputs), lambda result: result.logits
    )
    return export(draw, model, inputs, ["logits"], opset=13, script=True)


@recipe(ENCODERS, "torch dynamo", "positions of padded texts")
def roberta(draw: Draw) -> BuiltModel:
    return encoder(draw, "Roberta", 20)


@recipe(ENCODERS, "torch script", "shared layers")
def albert(draw: Draw) -> BuiltModel:
    return encoder(draw, "Albert", 17, script=True, embedding_size=24)


@recipe(ENCODERS, "torch dynamo", "projected embeddings")
def electra(draw: Draw) -> BuiltModel:
    return encoder(draw, "Electra", 18, embedding_size=24)


@recipe(ENCODERS, "torch script", "disentangled attention")
def deberta(draw: Draw) -> BuiltModel:
    return encoder(
        draw,
        "DebertaV2",
        17,
        script=True,
        attn="eager",
        relative_attention=True,
        position_buckets=8,
        pos_att_type=["p2c", "c2p"],
        norm_rel_ebd="layer_norm",
        share_att_key=True,
    )


@recipe(ENCODERS, "torch script", "relative positions")
def mpnet(draw: Draw) -> BuiltModel:
    return encoder(draw, "MPNet", 16, script=True, attn="eager")


@recipe(ENCODERS, "torch dynamo", "rotary embeddings", "alternating local attention")
def modernbert(draw: Draw) -> BuiltModel:
    return encoder(
        draw, "ModernBert", 18, attn="eager", bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2
    )


def decoder(
    draw: Draw, name: str, opset: int, script: bool = False, past: bool = False, **options: Any
) -> BuiltModel:
    """Export a decoder: a whole text, or one more token after past keys and values."""
    import transformers

    from corpus.exporting import export
    from corpus.networks.cached_decoder import CachedDecoder, PlainDecoder

    heads, layers = draw.choose("heads", 4, 2), draw.choose("layers", 2, 1, 3)
    head = draw.choose("head", 16, 8, 32)
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": heads * head,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": draw.choose("middle", 128, 96),
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "attn_implementation": "eager",
    }
    config = getattr(transformers, f"{name}Config")(**sizes | options)
    class_ = "GPT2LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM"
    model = getattr(transformers, class_)(config)
    if not past:
        length = draw.choose("length", 16, 21)
        inputs = {
            "input_ids": tokens(draw, 2, length, VOCABULARY),
            "attention_mask": prefix_mask(draw, 2, length),
        }
        return export(draw, PlainDecoder(model), inputs, ["logits"], opset=opset, script=script)
    length = draw.choose("past", 12, 7)
    groups = options.get("num_key_value_heads", heads)
    inputs = {
        "input_ids": tokens(draw, 1, 1, VOCABULARY),
        "attention_mask": prefix_mask(draw, 1, length + 1),
    }
    for layer in range(layers):
        for what in ("key", "value"):
            inputs[f"past_{what}_{layer}"] = draw.normal(1, groups, length, head)
    outputs = ["logits", *(name.replace("past", "present") for name in list(inputs)[2:])]
    return export(draw, CachedDecoder(model), inputs, outputs, opset=opset, script=script)


@recipe(DECODERS, "torch script", "causal attention")
def gpt2(draw: Draw) -> BuiltModel:
    return decoder(draw, "GPT2", 14, script=True)


@recipe(DECODERS, "torch script", "past keys and values")
def gpt2_past(draw: Draw) -> BuiltModel:
    return decoder(draw, "GPT2", 17, script=True, past=True)


@recipe(DECODERS, "torch dynamo", "rotary embeddings", "grouped keys", "RMS norm")
def llama(draw: Draw) -> BuiltModel:
    return decoder(draw, "Llama", 18, num_key_value_heads=2)


@recipe(DECODERS, "torch dynamo", "past keys and values", "rotary embeddings", "grouped keys")
def llama_past(draw: Draw) -> BuiltModel:
    return decoder(draw, "Llama", 23, past=True, num_key_value_heads=2)


@recipe(DECODERS, "torch script", "learned positions")
def opt(draw: Draw) -> BuiltModel:
    return decoder(
        draw, "OPT", 17, script=True, ffn_dim=96, word_embed_proj_dim=draw.choose("projection", 32, 24)
    )


@recipe(DECODERS, "torch dynamo", "partial rotary embeddings")
def phi(draw: Draw) -> BuiltModel:
    return decoder(draw, "Phi", 18)


@recipe(DECODERS, "torch script", "scaled embeddings", "tied weights")
def gemma(draw: Draw) -> BuiltModel:
    return decoder(draw, "Gemma", 17, script=True, num_key_value_heads=1, head_dim=16)


@recipe(DECODERS, "torch script", "past keys and values", "sliding window")
def mistral_past(draw: Draw) -> BuiltModel:
    return decoder(draw, "Mistral", 17, script=True, past=True, num_key_value_heads=2, sliding_window=8)


@recipe(DECODERS, "torch script", "linear biases")
def bloom(draw: Draw) -> BuiltModel:
    return decoder(draw, "Bloom", 15, script=True, n_layer=2, n_head=4)


@recipe(DECODERS, "torch dynamo", "query and key norms")
def qwen3(draw: Draw) -> BuiltModel:
    return decoder(draw, "Qwen3", 22, num_key_value_heads=2, head_dim=16)


def _t5(draw: Draw) -> Any:
    from transformers import T5Config, T5Model

    config = T5Config(
        vocab_size=VOCABULARY,
        d_model=64,
        d_kv=16,
        d_ff=96,
        num_layers=draw.choose("layers", 2, 1),
        num_heads=4,
        feed_forward_proj=draw.choose("activation", "relu", "gated-gelu"),
        use_cache=False,
    )
    return T5Model(config)


@recipe(SEQ2SEQ, "torch script", "relative positions", "RMS norm")
def t5_encoder(draw: Draw) -> BuiltModel:
    from corpus.exporting import Positional, export

    inputs = {"input_ids": tokens(draw, 2, 20, VOCABULARY), "attention_mask": prefix_mask(draw, 2, 20)}
    model = Positional(_t5(draw).encoder, list(inputs), lambda result: result.last_hidden_state)
    return export(draw, model, inputs, ["hidden"], opset=16, script=True)


@recipe(SEQ2SEQ, "torch dynamo", "relative positions", "cross attention")
def t5_decoder(draw: Draw) -> BuiltModel:
    from corpus.exporting import Positional, export

    inputs = {
        "input_ids": tokens(draw, 2, 9, VOCABULARY),
        "encoder_hidden_states": draw.normal(2, 20, 64),
        "encoder_attention_mask": prefix_mask(draw, 2, 20),
    }
    model = Positional(
        _t5(draw).decoder, list(inputs), lambda result: result.last_hidden_state, use_cache=False
    )
    return export(draw, model, inputs, ["hidden"], opset=18)
