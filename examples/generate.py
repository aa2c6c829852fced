"""Generate tokens with a decoder, beside onnxruntime and OpenVINO, and compare their speed.

    python -m examples.generate                       GPT-2 with 2 small layers
    python -m examples.generate --size gpt2           the shapes of GPT-2 small, 124 million parameters
    python -m examples.generate --model model.onnx    a decoder of your own, with past_key_values

Weights are random, so the text means nothing, but all engines have to write the same.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from examples.decoder_engines import ENGINES, TOOLCHAINS, Engine, Tokens, generate, open_engine
from examples.decoder_model import write_decoder
from examples.decoder_size import SIZES


def main(words: Sequence[str] | None = None) -> int:
    """Generate with each engine and print its tokens per second; return 1 if tokens differ."""
    arguments = _parser().parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.model or Path(folder) / "decoder.onnx"
        if arguments.model is None:
            size = SIZES[arguments.size]
            changes = {"layers": arguments.layers} if arguments.layers else {}
            _write(replace(size, **changes), path)
        names = [*(f"intarsia {item}" for item in arguments.toolchains), *ENGINES]
        engines = {name: open_engine(name, path, arguments.threads) for name in names}
        prompt = np.random.default_rng(arguments.seed).integers(
            0, arguments.vocabulary, (1, arguments.prompt)
        )
        return _report(engines, prompt, arguments.tokens, arguments.rounds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="gpt2_tiny")
    parser.add_argument("--layers", type=int, help="another number of layers")
    parser.add_argument("--model", type=Path, help="an ONNX file, in place of one of the sizes")
    parser.add_argument("--vocabulary", type=int, default=97, help="tokens of the prompt are below")
    parser.add_argument("--toolchains", nargs="+", choices=TOOLCHAINS, default=["native"])
    parser.add_argument("--prompt", type=int, default=20, help="number of tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=100, help="number of tokens to generate")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def _write(size: object, path: Path) -> None:
    import onnx

    data = path.with_suffix(".data").name
    onnx.save(write_decoder(size), path, save_as_external_data=True, location=data)  # type: ignore[arg-type]  # a DecoderSize


def _report(engines: dict[str, Engine], prompt: Tokens, count: int, rounds: int) -> int:
    """Generate interleaved, compare the tokens with onnxruntime's, and print the best rate of each engine."""
    texts: dict[str, list[int]] = {}
    seconds = dict.fromkeys(engines, float("inf"))
    for _ in range(rounds):
        for name, engine in engines.items():
            start = time.perf_counter()
            texts[name] = generate(engine, prompt, count)
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    right = texts["onnxruntime"]
    print(f"{'engine':>20}  tokens per second  tokens")
    for name, text in texts.items():
        verdict = "as onnxruntime's" if text == right else f"differ at {_first_difference(text, right)}"
        print(f"{name:>20}  {count / seconds[name]:17.1f}  {verdict}")
    return int(any(text != right for text in texts.values()))


def _first_difference(text: Sequence[int], other: Sequence[int]) -> int:
    return next(number for number, pair in enumerate(zip(text, other, strict=True)) if pair[0] != pair[1])


if __name__ == "__main__":
    sys.exit(main())
