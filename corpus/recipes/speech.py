"""Speech: encoders, a decoder, and streaming models."""

from __future__ import annotations

from typing import Any

from corpus.draw import Draw
from corpus.inputs import prefix_mask, sound, tokens
from corpus.recipe import BuiltModel, recipe

FAMILY = "speech"


@recipe(FAMILY, "torch script", "convolutions over waves", "attention")
def wav2vec2(draw: Draw) -> BuiltModel:
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    from corpus.exporting import Positional, export

    config = Wav2Vec2Config(
        vocab_size=30,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=draw.choose("heads", 4, 2),
        intermediate_size=96,
        conv_dim=[32, 32, 32],
        conv_kernel=[10, 3, 2],
        conv_stride=[5, 4, 2],
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        attn_implementation="eager",
        feat_extract_norm=draw.choose("norm", "group", "layer"),
        do_stable_layer_norm=False,
    )
    model = Positional(Wav2Vec2ForCTC(config), ["input_values"], lambda result: result.logits)
    return export(draw, model, {"wave": sound(draw, 1, 4000)}, ["logits"], opset=16, script=True)


def _whisper(draw: Draw) -> Any:
    from transformers import WhisperConfig, WhisperModel

    config = WhisperConfig(
        vocab_size=200,
        num_mel_bins=20,
        encoder_layers=draw.choose("encoder", 2, 1),
        decoder_layers=draw.choose("decoder", 2, 1),
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=96,
        decoder_ffn_dim=96,
        d_model=48,
        max_source_positions=50,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        attn_implementation="eager",
    )
    return WhisperModel(config)


@recipe(FAMILY, "torch dynamo", "1-D convolutions", "attention")
def whisper_encoder(draw: Draw) -> BuiltModel:
    from corpus.exporting import Positional, export

    model = Positional(_whisper(draw).encoder, ["input_features"], lambda result: result.last_hidden_state)
    return export(draw, model, {"features": draw.normal(1, 20, 100)}, ["hidden"], opset=18)


@recipe(FAMILY, "torch script", "cross attention", "causal attention")
def whisper_decoder(draw: Draw) -> BuiltModel:
    from corpus.exporting import Positional, export

    names = ["input_ids", "attention_mask", "encoder_hidden_states"]
    model = Positional(
        _whisper(draw).decoder, names, lambda result: result.last_hidden_state, use_cache=False
    )
    inputs = {
        "input_ids": tokens(draw, 2, 7, 200),
        "attention_mask": prefix_mask(draw, 2, 7),
        "encoder_hidden_states": draw.normal(2, 50, 48),
    }
    return export(draw, model, inputs, ["hidden"], opset=17, script=True)


@recipe(FAMILY, "torch script", "GRU", "state in and out")
def streaming_gru(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.sequences import StreamingGru

    width, layers = draw.choose("width", 48, 32, 20), draw.choose("layers", 2, 1)
    inputs = {
        "block": draw.normal(1, draw.choose("frames", 8, 5), 40),
        "state": draw.normal(layers, 1, width),
    }
    return export(
        draw, StreamingGru(40, width, layers), inputs, ["letters", "new_state"], opset=14, script=True
    )


@recipe(FAMILY, "torch script", "bidirectional GRU")
def ctc_gru(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.sequences import BidirectionalCtc

    model = BidirectionalCtc(draw.choose("width", 40, 24), "GRU")
    return export(draw, model, {"spectrogram": draw.normal(2, 1, 40, 50)}, ["letters"], opset=17, script=True)


@recipe(FAMILY, "torch script", "bidirectional LSTM")
def ctc_lstm(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.sequences import BidirectionalCtc

    model = BidirectionalCtc(draw.choose("width", 40, 24), "LSTM")
    return export(draw, model, {"spectrogram": draw.normal(2, 1, 40, 50)}, ["letters"], opset=13, script=True)


@recipe(FAMILY, "torch script", "bidirectional RNN", "lengths of sequences")
def packed_rnn(draw: Draw) -> BuiltModel:
    import numpy as np

    from corpus.exporting import export
    from corpus.networks.sequences import PackedRnn

    inputs = {"ids": tokens(draw, 3, 12, 60), "lengths": np.array([12, 9, 4])}
    kind = draw.choose("kind", "RNN", "GRU", "LSTM")
    return export(
        draw, PackedRnn(draw.choose("width", 24, 16), kind), inputs, ["tags"], opset=15, script=True
    )


@recipe(FAMILY, "torch dynamo", "gated convolutions", "attention")
def conformer(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.sequences import Conformer

    model = Conformer(
        40, draw.choose("width", 48, 32), draw.choose("blocks", 2, 1), draw.choose("kernel", 15, 7)
    )
    return export(draw, model, {"features": draw.normal(1, 60, 40)}, ["letters"], opset=18)


@recipe(FAMILY, "torch script", "transposed 1-D convolutions")
def vocoder(draw: Draw) -> BuiltModel:
    import torch

    from corpus.exporting import export

    width = draw.choose("width", 32, 24)
    model = torch.nn.Sequential(
        torch.nn.Conv1d(20, width, 7, padding=3),
        torch.nn.LeakyReLU(0.1),
        torch.nn.ConvTranspose1d(width, width // 2, 8, 4, 2),
        torch.nn.LeakyReLU(0.1),
        torch.nn.Conv1d(width // 2, width // 2, 3, padding=9, dilation=9),
        torch.nn.ELU(),
        torch.nn.ConvTranspose1d(width // 2, 8, 4, 2, 1),
        torch.nn.Conv1d(8, 1, 7, padding=3),
        torch.nn.Tanh(),
    )
    return export(draw, model, {"features": draw.normal(1, 20, 40)}, ["wave"], opset=16, script=True)
