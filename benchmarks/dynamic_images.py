"""One artifact for images of every size against dynamic engines, and against native for each size.

Models are convolutional networks of the zoo, or any ONNX file, in which height and width became
dimensions of any size. Each contender is a process of its own, stopped while another one is timed; turns
are interleaved. "native" has one program for all sizes; those with "static" are compiled for each of them.
Intarsia refuses dynamic shapes for OpenVINO on one thread, where one that does not fit ends the process, so
OpenVINO's time on one thread is that of "openvino static".

"detector" is a detector with NonMaxSuppression (`benchmarks.detector`), whose tail onnxruntime runs for
native as well, on one thread, since native runs no boxes of any number; give sizes that are multiples of 32.

    python -m benchmarks.dynamic_images squeezenet unet --threads 1 --sizes 224x224 320x256 --rounds 5
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import onnx
from benchmarks.detector import detector
from benchmarks.dynamic_batches import Contender, answer_turns

if TYPE_CHECKING:
    from intarsia.runtime.executable import Executable

CONTENDERS: Final = ("native", "native static", "onnxruntime", "openvino", "openvino static")
SIZES: Final = ("160x160", "224x224", "320x256", "97x131")
DETECTOR: Final = "detector"
_NETWORK, _TAIL = "network", "tail"
_RANK: Final = 4


def main() -> None:
    """Print a table for each model: the ratio of each contender's time to that of native's one artifact."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=["squeezenet"], help="models of the zoo, or ONNX files")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="seconds of a turn")
    parser.add_argument("--sizes", nargs="*", default=SIZES, help="height x width")
    parser.add_argument("--contenders", nargs="*", default=CONTENDERS)
    parser.add_argument("--serve", nargs=2, metavar=("CONTENDER", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        contender, file = arguments.serve
        serve(contender, file, arguments)
        return
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            if model == DETECTOR:
                network, tail, whole = detector()
                onnx.save(network, path.with_stem(_NETWORK))
                onnx.save(tail, path.with_stem(_TAIL))
            else:
                whole = with_any_size(model)
            onnx.save(whole, path)
            report(model, path, arguments)


def with_any_size(name: str) -> onnx.ModelProto:
    """Return a model whose inputs are images of any size; its last pool of one pixel is one of any image."""
    from intarsia.frontend.zoo import build_model

    model = onnx.load(name) if name.endswith(".onnx") else build_model(name)
    pools = [node for node in model.graph.node if node.op_type == "AveragePool"]
    results = [pool.output[0] for pool in pools[-1:]]
    readers = {node.op_type for node in model.graph.node if set(node.input) & set(results)}
    if readers & {"Reshape", "Flatten"}:
        pools[-1].op_type = "GlobalAveragePool"
        del pools[-1].attribute[:]
    for item in model.graph.input:
        dims = item.type.tensor_type.shape.dim
        if len(dims) == _RANK:
            dims[2].dim_param, dims[3].dim_param = "height", "width"
    del model.graph.value_info[:]
    for item in model.graph.output:
        item.type.tensor_type.ClearField("shape")
    return model


def serve(contender: str, file: str, arguments: argparse.Namespace) -> None:
    """Build a contender, and time calls as lines on standard input ask for."""
    from intarsia import build, from_onnx
    from intarsia.measure.inputs import random_inputs
    from intarsia.passes import bind_sizes, partition_whole
    from intarsia.target import Target

    name, _, kind = contender.partition(" ")
    path = Path(file)
    tail = path.with_stem(_TAIL)
    is_split = name == "native" and tail.exists()
    module = from_onnx(str(path.with_stem(_NETWORK)) if is_split else file)
    target = Target(f"cpu -toolchain={name} -threads={arguments.threads}")
    bound = [bind_sizes(module, sizes_of(size)) for size in arguments.sizes]
    inputs: list[dict[str, Any]] = [random_inputs(item["main"], 0) for item in bound]
    programs = bound if kind == "static" else [module]
    built: list[Executable | _WithTail] = [build(partition_whole(item, target)) for item in programs]
    if is_split:
        rest = Target("cpu -toolchain=onnxruntime -threads=1")  # more would spin beside native's
        last = build(partition_whole(from_onnx(str(tail)), rest))
        built = [_WithTail(item, last) for item in built if not isinstance(item, _WithTail)]
    executables = built if kind == "static" else built * len(bound)
    answer_turns(list(zip(executables, inputs, strict=True)))


class _WithTail:
    """A program whose results another one reads.

    Args:
        network: The first program.
        tail: The program that reads its results.
    """

    def __init__(self, network: Executable, tail: Executable) -> None:
        self._network, self._tail = network, tail

    def run_flat(self, **given: Any) -> list[Any]:
        """Run both programs."""
        return self._tail.run_flat(*self._network.run_flat(**given))


def sizes_of(size: str) -> dict[str, int]:
    """Return the sizes of a call by the names of the dimensions."""
    height, _, width = size.partition("x")
    return {"height": int(height), "width": int(width)}


def report(model: str, path: Path, arguments: argparse.Namespace) -> None:
    """Time all contenders at all sizes, and print a table."""
    contenders: dict[str, Contender] = {}
    for name in arguments.contenders:
        command = [
            *(sys.executable, "-m", "benchmarks.dynamic_images", "--serve", name, str(path)),
            *("--threads", str(arguments.threads)),
            *("--sizes", *arguments.sizes),
        ]
        contender = Contender(command)
        if contender.is_ready:
            contenders[name] = contender
        else:
            print(f"{name} does not run this model")
    others = [name for name in contenders if name != "native"]
    print(f"{model}, {arguments.threads} threads")
    print(f"{'size':>10} {'native ms':>10} {'first call':>10} " + " ".join(f"{name:>14}" for name in others))
    for number, size in enumerate(arguments.sizes):
        rounds = [
            {name: contender.time(number, arguments.seconds) for name, contender in contenders.items()}
            for _ in range(arguments.rounds)
        ]
        native = statistics.median(item["native"] for item in rounds)
        first = contenders["native"].first_calls[number]
        ratios = (statistics.median(item[name] / item["native"] for item in rounds) for name in others)
        print(
            f"{size:>10} {native * 1e3:>10.3f} {first * 1e3:>10.3f} "
            + " ".join(f"{ratio:>14.3f}" for ratio in ratios),
            flush=True,
        )
    for contender in contenders.values():
        contender.close()


if __name__ == "__main__":
    main()
