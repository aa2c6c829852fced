"""The first call of each new size beside the calls of this size that follow, for one artifact of any size.

The artifact of each contender is loaded in a process of its own, which meets the sizes in a drawn order, so
that they grow and shrink. Each row has the milliseconds of the first call and of a steady one (the median),
their difference, and the page faults and the system time of the process during the first call. The first row
is also the first call of the process.

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
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import onnx
from benchmarks import dynamic_batches, dynamic_images, dynamic_lengths
from benchmarks.detector import detector

if TYPE_CHECKING:
    from intarsia.ir import IRModule
    from intarsia.runtime.executable import Executable

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
    parser.add_argument("--contenders", nargs="*", default=CONTENDERS)
    parser.add_argument("--thousand", action="store_true", help="run a thousand sizes of native")
    parser.add_argument("--serve", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments)
        return
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            report(model, Path(folder), arguments)


def report(model: str, folder: Path, arguments: argparse.Namespace) -> None:
    """Build the artifacts of all contenders, and print a table of each."""
    write_models(model, folder, arguments.layers)
    for contender in ["native"] if arguments.thousand else arguments.contenders:
        try:
            write_artifacts(contender, model, folder, arguments)
        except Exception as error:
            print(f"{contender} does not run {model}: {str(error).splitlines()[0]}")
            continue
        command = [sys.executable, "-m", "benchmarks.first_calls", model, "--serve", str(folder)]
        command += ["--seed", str(arguments.seed), "--pause", str(arguments.pause)]
        for name in ("lengths", "batches", "images"):
            command += [f"--{name}", *getattr(arguments, name)]
        command += ["--thousand"] if arguments.thousand else []
        print(f"{model}, {contender}, {arguments.threads} threads, seed {arguments.seed}", flush=True)
        subprocess.run(command, check=True)


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
    for old in folder.glob("*.artifact"):
        old.unlink()
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
        build(partition_whole(module, target)).save(folder / f"{number}.artifact")


def serve(arguments: argparse.Namespace) -> None:
    """Load the artifact of a folder, and print what the calls of drawn sizes take."""
    import intarsia as ia
    from intarsia import from_onnx
    from intarsia.measure.inputs import random_inputs
    from intarsia.passes import bind_sizes

    (model,), folder = arguments.models, Path(arguments.serve)
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
    parts: list[Executable] = [ia.load(path) for path in sorted(folder.glob("*.artifact"))]

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
    rows = [(size, first_call(partial(run, inputs[size]), arguments.pause)) for size in sizes]
    print(f"{'size':>10} {'first ms':>10} {'steady ms':>10} {'more ms':>9} {'faults':>8} {'system ms':>10}")
    for size, (first_s, steady_s, faults, system_s) in rows:
        print(
            f"{size:>10} {first_s * 1e3:>10.3f} {steady_s * 1e3:>10.3f} {(first_s - steady_s) * 1e3:>+9.3f} "
            f"{faults:>8} {system_s * 1e3:>10.3f}"
        )
    later = [row[0] - row[1] for _, row in rows[1:]]
    print(
        f"later sizes: {statistics.median(later) * 1e3:+.3f} ms in the median, {max(later) * 1e3:+.3f} at "
        f"most; {resident_mib():.0f} MiB resident",
        flush=True,
    )


def first_call(run: Callable[[], object], pause: float) -> tuple[float, float, int, float]:
    """Return the seconds of the first and of a steady call, and faults and system seconds of the first."""
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
    return first, statistics.median(steady), faults, after.ru_stime - before.ru_stime


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
