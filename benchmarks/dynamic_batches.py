"""One artifact for every batch against dynamic engines, and against native compiled for each size.

The artifact has code that reads the size (`-batches=any`); "native" has code for 1, 4 and 16 items, of which
batches are made up. What the first call of a size takes is beside the table.

Each contender is a process of its own, stopped while another one is timed; turns are interleaved. Sizes are
none of those that native compiles parts for, but some.

    python -m benchmarks.dynamic_batches zoo:resnet50 corpus:vit --threads 2
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import onnx

SIZES: Final = (1, 2, 3, 4, 6, 7, 8, 11, 16, 23)
CONTENDERS: Final = ("native -batches=any", "native", "native static", "onnxruntime", "openvino")
_ARTIFACT: Final = CONTENDERS[0]
_STATIC: Final = "native static"
_BATCH: Final = "batch"
PERCEPTRON: Final = "perceptron"
"""Name of a model of four matrix products, whose weights every item of a batch reads."""


def main() -> None:
    """Print a table for each model: the ratio of each contender's time to that of native's one artifact."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=[PERCEPTRON, "zoo:mobilenet_v2", "zoo:resnet18"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="seconds of a turn")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--contenders", nargs="*", default=CONTENDERS, help=f"besides {_ARTIFACT}")
    parser.add_argument("--serve", nargs=2, metavar=("CONTENDER", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        contender, file = arguments.serve
        serve(contender, file, arguments.threads, arguments.sizes)
        return
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            write_model(model, path)
            report(model, path, arguments)


def perceptron() -> onnx.ModelProto:
    """Return four layers of 784, 2048, 2048, 2048 and 10 numbers with random weights."""
    rng, widths = np.random.default_rng(0), (784, 2048, 2048, 2048, 10)
    graph = onnx.GraphProto(name=PERCEPTRON)
    previous = "x"
    for layer, (before, after) in enumerate(pairwise(widths)):
        weights = rng.standard_normal((before, after)).astype(np.float32) / before**0.5
        graph.initializer.append(onnx.numpy_helper.from_array(weights, f"w{layer}"))
        graph.node.append(onnx.helper.make_node("MatMul", [previous, f"w{layer}"], [f"p{layer}"]))
        graph.node.append(onnx.helper.make_node("Relu", [f"p{layer}"], [f"r{layer}"]))
        previous = f"r{layer}"
    graph.input.append(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, widths[0]]))
    graph.output.append(onnx.helper.make_tensor_value_info(previous, onnx.TensorProto.FLOAT, None))
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])


def write_model(name: str, path: Path) -> None:
    """Write a model with a symbolic batch."""
    kind, _, rest = name.partition(":")
    if name == PERCEPTRON:
        model = perceptron()
    elif kind == "zoo":
        from intarsia.frontend.zoo import build_model

        model = build_model(rest)
    else:
        (source,) = (Path.home() / ".cache/intarsia-corpus").glob(f"{rest}-*/model.onnx")
        model = onnx.load(source)
    weights = {tensor.name for tensor in model.graph.initializer}
    for item in model.graph.input:
        if item.name not in weights:
            item.type.tensor_type.shape.dim[0].dim_param = _BATCH
    targets = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    for tensor in model.graph.initializer:
        if tensor.name in targets:
            extents = onnx.numpy_helper.to_array(tensor).copy()
            if extents.size > 1 and extents[0] == 1:
                extents[0] = 0  # as many as there are: models of the zoo name their batch of 1
                tensor.CopyFrom(onnx.numpy_helper.from_array(extents, tensor.name))
    del model.graph.value_info[:]
    for item in model.graph.output:
        item.type.tensor_type.ClearField("shape")
    onnx.save(model, path)


def serve(contender: str, file: str, threads: int, sizes: Sequence[int]) -> None:
    """Time calls of one contender as lines on standard input ask for."""
    from intarsia import build, from_onnx
    from intarsia.measure.inputs import random_inputs
    from intarsia.passes import bind_sizes, partition_whole
    from intarsia.target import Target

    name, _, rest = contender.partition(" ")
    is_static = rest == "static"
    target = Target(f"cpu -toolchain={name} -threads={threads} {'' if is_static else rest}".strip())
    module = from_onnx(file)
    whole = None if is_static else build(partition_whole(module, target))
    inputs = {size: random_inputs(bind_sizes(module, {_BATCH: size})["main"], 0) for size in sizes}
    executables = {
        size: build(partition_whole(bind_sizes(module, {_BATCH: size}), target)) if whole is None else whole
        for size in sizes
    }
    answer_turns([(executables[size], inputs[size]) for size in sizes])


class TakesArrays(Protocol):
    """A program, or several as one."""

    @property
    def run_flat(self) -> Callable[..., object]:
        """Function that runs it on arrays by name."""


def answer_turns(calls: Sequence[tuple[TakesArrays, dict[str, Any]]]) -> None:
    """Print the seconds of first calls, then time one for each line of input: its number, and seconds."""
    first_calls = []
    for executable, given in calls:
        start = time.perf_counter()
        executable.run_flat(**given)
        first_calls.append(time.perf_counter() - start)
    print(json.dumps(first_calls), flush=True)
    for line in sys.stdin:
        number, seconds = json.loads(line)
        executable, given = calls[number]
        spent: list[float] = []
        end = time.perf_counter() + seconds
        while not spent or time.perf_counter() < end:
            start = time.perf_counter()
            executable.run_flat(**given)
            spent.append(time.perf_counter() - start)
        print(json.dumps(statistics.median(spent)), flush=True)


class Contender:
    """The process of a contender, which answers turns."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.first_calls: list[float] = self._read() or []
        self.is_ready = bool(self.first_calls)
        self._signal(signal.SIGSTOP)

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def _signal(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, number)

    def time(self, number: int, seconds: float) -> float:
        """Return the median seconds of a call, by its number."""
        assert self.process.stdin is not None
        self._signal(signal.SIGCONT)
        self.process.stdin.write(json.dumps([number, seconds]) + "\n")
        self.process.stdin.flush()
        result = float(self._read())
        self._signal(signal.SIGSTOP)
        return result

    def close(self) -> None:
        """End the process."""
        self._signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


def report(model: str, path: Path, arguments: argparse.Namespace) -> None:
    """Time all contenders, and print a table."""
    threads, sizes = arguments.threads, arguments.sizes
    command = [sys.executable, "-m", "benchmarks.dynamic_batches", "--threads", str(threads)]
    command += ["--sizes", *map(str, sizes), "--serve"]
    names = dict.fromkeys((_ARTIFACT, *arguments.contenders))
    contenders = {name: Contender([*command, name, str(path)]) for name in names}
    able = [name for name, item in contenders.items() if item.is_ready]
    try:
        rows = {
            size: time_size(number, contenders, able, arguments.rounds, arguments.seconds)
            for number, size in enumerate(sizes)
        }
    finally:
        for contender in contenders.values():
            contender.close()
    print(f"\n{model}, {threads} threads: time of the other / native with one artifact")
    print("batch   artifact   first call  " + "  ".join(f"{name:>14}" for name in able[1:]))
    for size, times in rows.items():
        artifact = times[_ARTIFACT]
        ratios = (f"{times[name] / artifact:14.3f}" for name in able[1:])
        first = contenders[_ARTIFACT].first_calls[sizes.index(size)]
        print(f"{size:5}  {artifact * 1e3:7.3f} ms  {first * 1e3:7.3f} ms  " + "  ".join(ratios), flush=True)
    engines = [name for name in able if not name.startswith("native")]
    if engines:
        better = [min(times[name] for name in engines) / times[_ARTIFACT] for times in rows.values()]
        print(
            f"better engine: {statistics.geometric_mean(better):.3f} on average, {min(better):.3f} at least"
        )
    if _STATIC in able:
        static = [times[_STATIC] / times[_ARTIFACT] for times in rows.values()]
        mean = statistics.geometric_mean(static)
        print(f"own static build: {mean:.3f} on average, {min(static):.3f} at least", flush=True)


def time_size(
    number: int, contenders: dict[str, Contender], able: Sequence[str], rounds: int, seconds: float
) -> dict[str, float]:
    """Return the median of the turns of each contender at one size, by its number."""
    turns: dict[str, list[float]] = {name: [] for name in able}
    for _ in range(rounds):
        for name in able:
            turns[name].append(contenders[name].time(number, seconds))
    return {name: statistics.median(values) for name, values in turns.items()}


if __name__ == "__main__":
    main()
