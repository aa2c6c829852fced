"""Steps of a decoder with its cache, at several lengths of the past, beside the engines' best practice.

The decoder is built once by each toolchain and saved. Then each contender is a process of its own that loads
it, stopped while another one is timed; turns are interleaved. A turn reads tokens up to a length of the past,
and then times single steps.

    python -m benchmarks.decoding gpt2 --threads 1
    python -m benchmarks.decoding llama --layers 4 --toolchains native onnxruntime
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from benchmarks.dynamic_batches import Contender
from examples.decoder_engines import ENGINES, TOOLCHAINS, IntarsiaEngine, build_decoder, open_engine
from examples.decoder_model import write_decoder
from examples.decoder_size import SIZES

PASTS: Final = (1, 16, 64, 128, 256, 512, 768, 1000)
_STEPS: Final = 12
"""Number of steps that a turn times; the past grows by as many."""
_WARM_UP: Final = 2
_PROMPT: Final = 128
"""Largest number of tokens that are read at once on the way to a length of the past."""


def main() -> None:
    """Print the ratio of each contender's time to that of the first toolchain."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("size", nargs="?", choices=SIZES, default="gpt2_tiny")
    parser.add_argument("--layers", type=int, help="another number of layers")
    parser.add_argument("--longest", type=int, default=max(PASTS), help="the largest past")
    parser.add_argument("--toolchains", nargs="+", choices=TOOLCHAINS, default=["native"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", nargs=2, metavar=("CONTENDER", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        contender, file = arguments.serve
        serve(contender, Path(file), arguments.threads)
        return
    size = SIZES[arguments.size]
    changes = {"layers": arguments.layers} if arguments.layers else {}
    pasts = [past for past in PASTS if past <= arguments.longest]
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "decoder.onnx"
        written = write_decoder(replace(size, longest=2048, **changes))
        onnx.save(written, model, save_as_external_data=True, location="decoder.data")
        files = dict.fromkeys(ENGINES, model)
        for toolchain in arguments.toolchains:
            files[f"intarsia {toolchain}"] = Path(folder) / f"{toolchain}.intarsia"
            with build_decoder(model, toolchain, arguments.threads) as executable:
                executable.save(files[f"intarsia {toolchain}"])
        names = [*(f"intarsia {item}" for item in arguments.toolchains), *ENGINES]
        report(names, files, pasts, arguments.threads, arguments.rounds)


def serve(contender: str, file: Path, threads: int) -> None:
    """Time steps as lines on standard input ask for: the number of tokens of the past, and a number."""
    import intarsia as ia

    is_artifact = file.suffix == ".intarsia"
    engine = IntarsiaEngine(ia.load(file)) if is_artifact else open_engine(contender, file, threads)
    tokens = np.random.default_rng(0).integers(0, 97, (1, 2048))
    engine.read(tokens[:, :1])
    length = 1
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        past, _ = json.loads(line)
        if past < length:
            engine.reset()
            length = 0
        while length < past:
            stop = min(past, length + _PROMPT)
            engine.read(tokens[:, length:stop])
            length = stop
        spent = []
        for _ in range(_WARM_UP + _STEPS):
            start = time.perf_counter()
            engine.read(tokens[:, length : length + 1])
            spent.append(time.perf_counter() - start)
            length += 1
        print(json.dumps(statistics.median(spent[_WARM_UP:])), flush=True)


def report(
    names: Sequence[str], files: dict[str, Path], pasts: Sequence[int], threads: int, rounds: int
) -> None:
    """Time all contenders interleaved, and print a table."""
    command = [sys.executable, "-m", "benchmarks.decoding", "--threads", str(threads), "--serve"]
    contenders = {name: Contender([*command, name, str(files[name])]) for name in names}
    able = [name for name in names if contenders[name].is_ready]
    turns: dict[tuple[str, int], list[float]] = {(name, past): [] for past in pasts for name in able}
    try:
        for _ in range(rounds):
            for (name, past), values in turns.items():
                values.append(contenders[name].time(past, 0))
    finally:
        for contender in contenders.values():
            contender.close()
    print(f"time of the other / {able[0]}, {threads} threads")
    print(f"{'past':>5}  {able[0]:>20}  " + "  ".join(f"{name:>20}" for name in able[1:]))
    better = []
    for past in pasts:
        times = {name: turns[name, past] for name in able}
        ratios = {
            name: statistics.median(b / a for a, b in zip(times[able[0]], times[name], strict=True))
            for name in able[1:]
        }
        rate = 1 / statistics.median(times[able[0]])
        row = "  ".join(f"{ratio:20.3f}" for ratio in ratios.values())
        print(f"{past:5}  {rate:13.1f} steps/s  {row}", flush=True)
        better.append(min(ratios[name] for name in ENGINES))
    print(f"better engine: {statistics.geometric_mean(better):.3f} on average, {min(better):.3f} at least")


if __name__ == "__main__":
    main()
