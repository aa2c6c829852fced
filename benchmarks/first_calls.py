"""The first call of each new size beside the calls of this size that follow, for one artifact of any size.

The artifact of each contender is loaded in a process of its own, which meets the sizes in a drawn order, so
that they grow and shrink. Each row has the milliseconds of the first call and of a steady one (the median),
their difference, and the page faults and the system time of the process during the first call, threads in the
background included: medians over several processes. The first row is also the first call of a process.

Cases are "bert", "gpt2", "t5" and the decoders "gpt2_past" and "llama_past" at lengths (`--lengths`),
"batch:MODEL" at numbers of items (`--batches`), and models of the zoo at images (`--images`), of which
"detector" is `benchmarks.detector`: in native, onnxruntime runs its tail. Intarsia refuses dynamic shapes for
OpenVINO on one thread.

    python -m benchmarks.first_calls bert gpt2 squeezenet batch:resnet50 --threads 2 --seed 1
    python -m benchmarks.first_calls bert --thousand --threads 1

`--thousand` runs a thousand drawn sizes instead, and prints the resident memory on the way.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import onnx
from benchmarks import dynamic_batches, dynamic_images, dynamic_lengths
from benchmarks.detector import detector

if TYPE_CHECKING:
    from intarsia.ir import IRModule
    from intarsia.runtime.executable import Executable

Rows: TypeAlias = "list[tuple[Any, ...]]"
"""For each size: the size as text, then what `first_call` returns."""
CONTENDERS: Final = ("native", "onnxruntime", "openvino")
LENGTHS: Final = (1, 7, 33, 63, 100, 150, 200, 384)
BATCHES: Final = (1, 2, 3, 5, 8, 11, 16)
IMAGES: Final = ("160x160", "224x224", "320x256", "96x128", "416x416", "352x480")
DETECTOR: Final = "detector"
_BATCH: Final = "batch:"
_STEADY: Final = 7
"""Number of calls after the first one."""
_THOUSAND: Final = 1000


def main() -> None:
    """Print a table for each model and contender."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=["bert", "gpt2", "squeezenet"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=2, help="layers of transformers")
    parser.add_argument("--lengths", nargs="*", default=list(map(str, LENGTHS)))
    parser.add_argument("--batches", nargs="*", default=list(map(str, BATCHES)))
    parser.add_argument("--images", nargs="*", default=list(IMAGES), help="height x width")
    parser.add_argument("--seed", type=int, default=0, help="seed of the order of the sizes")
    parser.add_argument("--pause", type=float, default=0.05, help="idle seconds in front of each call")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each contender, interleaved")
    parser.add_argument("--contenders", nargs="*", default=CONTENDERS)
    parser.add_argument("--thousand", action="store_true", help="run a thousand sizes of native")
    parser.add_argument("--serve", nargs=2, metavar=("FOLDER", "CONTENDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments)
        return
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            report(model, Path(folder), arguments)


def report(model: str, folder: Path, arguments: argparse.Namespace) -> None:
    """Build the artifacts of all contenders, run them interleaved, and print a table of each."""
    write_models(model, folder, arguments.layers)
    able = []
    for contender in ["native"] if arguments.thousand else arguments.contenders:
        try:
            write_artifacts(contender, model, folder, arguments)
            able.append(contender)
        except Exception as error:
            print(f"{contender} does not run {model}: {str(error).splitlines()[0]}")
    rounds: dict[str, list[Rows]] = {contender: [] for contender in able}
    for _ in range(1 if arguments.thousand else arguments.rounds):
        for contender in able:
            command = [sys.executable, "-m", "benchmarks.first_calls", model]
            command += ["--serve", str(folder), contender]
            command += ["--seed", str(arguments.seed), "--pause", str(arguments.pause)]
            for name in ("lengths", "batches", "images"):
                command += [f"--{name}", *getattr(arguments, name)]
            if arguments.thousand:
                subprocess.run([*command, "--thousand"], check=True)
            else:
                rounds[contender].append(json.loads(subprocess.check_output(command)))
    for contender, tables in rounds.items():
        if tables:
            print(f"{model}, {contender}, {arguments.threads} threads, seed {arguments.seed}")
            print_table(tables)


def print_table(tables: Sequence[Rows]) -> None:
    """Print the median of each number over all processes of a contender."""
    print(f"{'size':>10} {'first ms':>10} {'steady ms':>10} {'more ms':>9} {'faults':>8} {'system ms':>10}")
    extras, resident = [], statistics.median(float(table[-1][-1]) for table in tables)
    for rows in zip(*tables, strict=True):
        more = statistics.median(first - steady for _, first, steady, *_ in rows)
        first, steady, faults, system = (statistics.median(row[at] for row in rows) for at in range(1, 5))
        print(f"{rows[0][0]:>10} {first:>10.3f} {steady:>10.3f} {more:>+9.3f} {faults:>8.0f} {system:>10.3f}")
        extras.append(more)
    later = extras[1:]
    print(
        f"later sizes: {statistics.median(later):+.3f} ms in the median, {max(later):+.3f} at most; "
        f"{resident:.0f} MiB resident",
        flush=True,
    )


def write_models(model: str, folder: Path, layers: int) -> None:
    """Write a model with symbolic sizes; that of a detector in two parts as well."""
    path = folder / "whole.onnx"
    if model.startswith(_BATCH):
        dynamic_batches.write_model(f"zoo:{model.removeprefix(_BATCH)}", path)
    elif model in dynamic_lengths.MODELS:
        onnx.save(dynamic_lengths.model_of(model, layers, 1), path)
    elif model == DETECTOR:
        for part, item in zip(("network", "tail", "whole"), detector(), strict=True):
            onnx.save(item, folder / f"{part}.onnx")
    else:
        onnx.save(dynamic_images.with_any_size(model), path)


def write_artifacts(contender: str, model: str, folder: Path, arguments: argparse.Namespace) -> None:
    """Write the artifact of a contender, or one for each part of a detector, with the range of sizes."""
    from intarsia import build, from_onnx
    from intarsia.ir import DimRange, with_dim_ranges
    from intarsia.passes import partition_whole
    from intarsia.target import Target

    parts = {"whole": contender}
    if contender == "native" and (folder / "tail.onnx").exists():
        parts = {"network": contender, "tail": "onnxruntime"}
    for number, (part, toolchain) in enumerate(parts.items()):
        options = " -batches=any" if toolchain == "native" else ""
        target = Target(f"cpu -toolchain={toolchain} -threads={arguments.threads}{options}")
        module = from_onnx(str(folder / f"{part}.onnx"))
        if number == 0:
            sizes = [dims_of(model, module, size) for size in sizes_of(model, arguments)]
            ranges = {name: [item[name] for item in sizes] for name in sizes[0]}
            module = with_dim_ranges(
                module, {name: DimRange(min(values), max(values)) for name, values in ranges.items()}
            )
        build(partition_whole(module, target)).save(folder / f"{contender}{number}.artifact")


def serve(arguments: argparse.Namespace) -> None:
    """Load the artifact of a folder, and print what the calls of drawn sizes take."""
    import intarsia as ia
    from intarsia import from_onnx
    from intarsia.measure.inputs import random_inputs
    from intarsia.passes import bind_sizes

    (model,), folder, contender = arguments.models, Path(arguments.serve[0]), arguments.serve[1]
    first = folder / ("network.onnx" if (folder / "network.onnx").exists() else "whole.onnx")
    module = from_onnx(str(first))
    draw = random.Random(arguments.seed)
    if arguments.thousand:
        sizes = [drawn_size(model, arguments, draw) for _ in range(_THOUSAND)]
    else:
        sizes = list(sizes_of(model, arguments))
        draw.shuffle(sizes)

    def inputs_of(size: str) -> dict[str, Any]:
        return random_inputs(bind_sizes(module, dims_of(model, module, size))["main"], 0)

    inputs = {} if arguments.thousand else {size: inputs_of(size) for size in sizes}
    parts: list[Executable] = [ia.load(path) for path in sorted(folder.glob(f"{contender}*.artifact"))]

    def run(given: Mapping[str, Any]) -> list[Any]:
        results = parts[0].run_flat(**given)
        for part in parts[1:]:
            results = part.run_flat(*results)
        return results

    if arguments.thousand:
        for number, size in enumerate(sizes):
            run(inputs_of(size))
            if number % 100 == 99:
                print(f"{number + 1:>6} sizes, {resident_mib():8.1f} MiB resident", flush=True)
        return
    rows = [(size, *first_call(partial(run, inputs[size]), arguments.pause)) for size in sizes]
    print(json.dumps(rows))


def first_call(run: Callable[[], object], pause: float) -> tuple[float, ...]:
    """Time the first call of a size and those that follow.

    Returns:
        Milliseconds of the first and of a steady call, page faults and milliseconds of system time of the
        first, and MiB of resident memory.
    """
    time.sleep(pause)
    before = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.perf_counter()
    result = run()
    first = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF)
    steady = []
    for _ in range(_STEADY):
        time.sleep(pause)  # as in front of the first call: caches get cold, and threads fall asleep
        begin = time.perf_counter()
        result = run()  # the result before is alive meanwhile, as in most loops
        steady.append(time.perf_counter() - begin)
    del result
    faults = after.ru_minflt - before.ru_minflt
    system = after.ru_stime - before.ru_stime
    return first * 1e3, statistics.median(steady) * 1e3, faults, system * 1e3, resident_mib()


def sizes_of(model: str, arguments: argparse.Namespace) -> list[str]:
    """Return the sizes that a model is run at."""
    if model.startswith(_BATCH):
        return list(arguments.batches)
    return list(arguments.lengths if model in dynamic_lengths.MODELS else arguments.images)


def drawn_size(model: str, arguments: argparse.Namespace, draw: random.Random) -> str:
    """Return a size between the least and the largest that a model is run at."""
    sizes = sizes_of(model, arguments)
    step = 32 if model == DETECTOR else 1
    axes = zip(*(map(int, size.split("x")) for size in sizes), strict=True)
    return "x".join(str(draw.randrange(min(axis), max(axis) + 1, step)) for axis in map(list, axes))


def dims_of(model: str, module: IRModule, size: str) -> dict[str, int]:
    """Return the sizes of the dimensions of a program."""
    if model.startswith(_BATCH):
        return {"batch": int(size)}
    if model in dynamic_lengths.MODELS:
        return dynamic_lengths.sizes_of(module, int(size), 1)
    return dynamic_images.sizes_of(size)


def resident_mib() -> float:
    """Return the resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize() / 2**20


if __name__ == "__main__":
    main()
