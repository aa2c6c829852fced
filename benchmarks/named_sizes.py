"""An artifact with variants for named sizes against engines, and against each toolchain at each size alone.

The model is tuned once for the sizes. Then each contender is a process of its own, stopped while another one
is timed; turns are interleaved. The last size is none that was named.

    python -m benchmarks.named_sizes corpus:bert_dynamic --shape batch=1,length=8:0.5,24:0.5 --other length=17
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from benchmarks.dynamic_batches import Contender, answer_turns

ENGINES: Final = ("onnxruntime", "openvino")
STATIC: Final = ("onnxruntime static", "openvino static", "native static")
_ARTIFACT: Final = "artifact"

Sizes: TypeAlias = Mapping[str, int]


def main() -> None:
    """Print a table for each model: the ratio of each contender's time to that of the artifact."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="an ONNX file, or corpus:NAME")
    parser.add_argument("--shape", required=True, help="shares of sizes: seq=16:0.5,64:0.3,batch=1")
    parser.add_argument("--other", default="", help="a size of the range that is not named: seq=40")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2, help="seconds of a turn")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--serve", nargs=3, metavar=("CONTENDER", "FILE", "SIZES"), help=argparse.SUPPRESS)
    if "--serve" in sys.argv:  # the command of a contender has no model
        contender, file, sizes = sys.argv[sys.argv.index("--serve") + 1 :][:3]
        serve(contender, file, json.loads(sizes), int(sys.argv[-1]))
        return
    report(parser.parse_args())


def serve(contender: str, file: str, sizes: Sequence[Sizes], threads: int) -> None:
    """Time calls of one contender as lines on standard input ask for."""
    from intarsia import build, from_onnx, load
    from intarsia.driver.shape_samples import sized_program
    from intarsia.measure.inputs import random_inputs
    from intarsia.passes import bind_sizes, name_dims, partition_whole
    from intarsia.support.callbacks import silent
    from intarsia.target import Target

    source, _, artifact = file.partition("|")
    module = name_dims(from_onnx(source))
    module = sized_program(module, {}, {}, silent).module
    name, _, kind = contender.partition(" ")
    bound = [bind_sizes(module, item) for item in sizes]
    inputs = [random_inputs(item["main"], 0) for item in bound]
    if contender == _ARTIFACT:
        executables = [load(artifact)] * len(sizes)
    else:
        target = Target(f"cpu -toolchain={name} -threads={threads}")
        programs = bound if kind == "static" else [module]
        built = [build(partition_whole(item, target)) for item in programs]
        executables = built if kind == "static" else built * len(sizes)
    answer_turns(list(zip(executables, inputs, strict=True)))


def report(arguments: argparse.Namespace) -> None:
    """Tune the model, time all contenders, and print a table."""
    import intarsia as ia
    from intarsia.cli.arguments.shape import parse_shape_words
    from intarsia.measure.sizes import choose_samples

    path = arguments.model
    if path.startswith("corpus:"):
        (path,) = (Path.home() / ".cache/intarsia-corpus").glob(f"{path.partition(':')[2]}-*/model.onnx")
    words = parse_shape_words([arguments.shape])
    result = ia.tune(str(path), dims={**words.dims}, budget=arguments.budget, threads=arguments.threads)
    sizes: list[Sizes] = [variant.sizes for variant in result.executable.plan.variants]
    fixed = {name: item.range.low for name, item in words.dims.items() if item.is_fixed}
    samples = choose_samples({name: item for name, item in words.dims.items() if not item.is_fixed})
    timed: list[Sizes] = [{**fixed, **sample.sizes} for sample in samples if sample.weight]
    if arguments.other:
        other = {name: int(size) for name, size in (part.split("=") for part in arguments.other.split(","))}
        timed.append({**timed[0], **other})
    print(f"{arguments.model}: {result.chosen.name}; variants for {[*map(dict, sizes)]}")
    for decision in result.explanation.decisions:
        print(f"  {decision}")
    with tempfile.TemporaryDirectory() as folder:
        artifact = Path(folder) / "model.intarsia"
        result.save(artifact)
        print_table(f"{path}|{artifact}", timed, arguments.threads, arguments.rounds, arguments.seconds)


def print_table(files: str, timed: Sequence[Sizes], threads: int, rounds: int, seconds: float) -> None:
    """Time all contenders interleaved, and print the times relative to the artifact's."""
    command = [sys.executable, "-m", "benchmarks.named_sizes", "--serve"]
    names = (_ARTIFACT, *ENGINES, *STATIC)
    contenders = {
        name: Contender([*command, name, files, json.dumps(timed), "--threads", str(threads)])
        for name in names
    }
    able = [name for name in names if contenders[name].is_ready]
    turns: dict[tuple[str, int], list[float]] = {
        (name, number): [] for name in able for number in range(len(timed))
    }
    try:
        for _ in range(rounds):
            for (name, number), values in turns.items():
                values.append(contenders[name].time(number, seconds))
    finally:
        for contender in contenders.values():
            contender.close()
    print("\ntime of the other / artifact")
    print(f"{'sizes':>30}      artifact  " + "  ".join(f"{name:>18}" for name in able[1:]))
    better, static = [], []
    for number, sizes in enumerate(timed):
        medians = {name: statistics.median(turns[name, number]) for name in able}
        label = ", ".join(f"{name}={size}" for name, size in sizes.items())
        ratios = {name: medians[name] / medians[_ARTIFACT] for name in able[1:]}
        row = "  ".join(f"{ratio:18.3f}" for ratio in ratios.values())
        print(f"{label:>30}  {medians[_ARTIFACT] * 1e3:9.3f} ms  {row}", flush=True)
        better.append(min((ratios[name] for name in ENGINES if name in ratios), default=math.nan))
        static.append(min((ratios[name] for name in STATIC if name in ratios), default=math.nan))
    for text, values in (("better dynamic engine", better), ("best static program", static)):
        print(f"{text}: {statistics.geometric_mean(values):.3f} on average, {min(values):.3f} at least")


if __name__ == "__main__":
    main()
