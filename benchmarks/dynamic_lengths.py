"""One artifact for texts of every length against dynamic engines, and against native for each length.

Models are transformers of the zoo, in which the length became a dimension of any size: shapes have -1 in its
stead, and what depends on it is cut out of tables for the most positions. t5 is the encoder of T5-small.
Engines run the dynamic model; on one thread OpenVINO is compiled for each length.

With several texts, their number is a dimension of any size as well. The decoders gpt2_past and llama_past
read one more token of each text; lengths are those of the past. An ONNX file may be given in place of a name:
symbolic dimensions in front count texts, others tokens.

Each contender is a process of its own, stopped while another one is timed; turns are interleaved. "native"
has one kernel for all lengths; "native static" is compiled for each of them, which takes most of the time.

    python -m benchmarks.dynamic_lengths bert --threads 1 --lengths 1 17 128 200 --layers 2
    python -m benchmarks.dynamic_lengths bert --threads 1 --lengths 1 17 128 --texts 3 --layers 2
    python -m benchmarks.dynamic_lengths gpt2_past llama_past --threads 1 --lengths 1 16 128 1000 --layers 2
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from benchmarks.dynamic_batches import Contender, answer_turns
from benchmarks.t5_model import t5_encoder
from onnx import numpy_helper

if TYPE_CHECKING:
    from intarsia.ir import IRModule, SymbolicDim, Var

LENGTHS: Final = (1, 7, 16, 33, 64, 100, 128, 200, 384, 512)
CONTENDERS: Final = ("native", "native static", "onnxruntime", "openvino")
ON_ONE_THREAD: Final = ("native", "native static", "onnxruntime", "openvino static")
"""Contenders on one thread, where OpenVINO is compiled for each length.

Its sizes at run time are unsafe there (`toolchain/openvino/model.py`).
"""
_BUILT: Final = 89
"""Length that the zoo's models are built with; no other dimension has it."""
Array = npt.NDArray[Any]
LENGTH: Final = "length"
"""Name of the dimension."""
TEXTS: Final = "texts"
"""Name of the dimension that counts texts."""
PAST: Final = "_past"
"""End of the names of decoders that read one token with a past."""
MODELS: Final = ("bert", "gpt2", "t5", "gpt2_past", "llama_past")


def main() -> None:
    """Print a table for each model: the ratio of each contender's time to that of native's one artifact."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models", nargs="*", default=["bert", "gpt2"], help=f"{', '.join(MODELS)}, or ONNX files"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--texts", type=int, default=1, help="texts of a call, all of one length")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="seconds of a turn")
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--serve", nargs=2, metavar=("CONTENDER", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        contender, file = arguments.serve
        serve(contender, file, arguments.threads, arguments.lengths, arguments.texts)
        return
    for model in arguments.models:
        if model.endswith(".onnx"):
            report(Path(model).stem, Path(model), arguments)
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            onnx.save(model_of(model, arguments.layers, arguments.texts), path)
            report(model, path, arguments)


def model_of(name: str, layers: int, texts: int) -> onnx.ModelProto:
    """Return a transformer with some layers, random weights, and texts or pasts of any length."""
    from examples.decoder_model import write_decoder
    from examples.decoder_size import SIZES

    family = name.removesuffix(PAST)
    if name == "t5":
        return t5_encoder(layers, LENGTH, TEXTS if texts > 1 else 1)
    if family == name:
        return transformer(name, layers, texts)
    return write_decoder(dataclasses.replace(SIZES[family], layers=layers))


def transformer(name: str, layers: int, texts: int) -> onnx.ModelProto:
    """Return BERT-base or GPT-2 small with some layers, random weights, and texts of any length."""
    from intarsia.frontend.zoo import bert, gpt2

    family, size = (bert, bert.BASE) if name == "bert" else (gpt2, gpt2.SMALL)
    model = family.build(dataclasses.replace(size, layers=layers, sequence=_BUILT), 0)
    return with_any_length(model, _BUILT, texts)


def with_any_length(model: onnx.ModelProto, length: int, texts: int = 1) -> onnx.ModelProto:
    """Return a transformer of the zoo that takes texts of any length; a pooler is left out.

    Args:
        model: Model for texts of one length.
        length: Length of these texts; no other dimension has this extent.
        texts: Number of texts; with several their number may be any.
    """
    graph = model.graph
    positions = next(item.dims[0] for item in graph.initializer if item.name.endswith("positions.weight"))
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    nodes = [onnx.helper.make_node("Shape", ["input_ids"], ["any.length"], start=1, end=2)]
    for tensor in graph.initializer:
        array = numpy_helper.to_array(tensor)
        if tensor.name in shapes:
            array = np.where(array == length, -1, array)
            array[:1] = 0 if texts > 1 and array.size > 2 else array[:1]
        elif array.ndim > 1 and array.shape[-1] == length:
            array = _extended(array, positions)
            nodes += _cut(tensor.name, 2 if array.ndim == 4 else 1, graph)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for name, value in (("any.start", 0), ("any.axis1", -1), ("any.axis2", -2)):
        graph.initializer.append(numpy_helper.from_array(np.array([value], np.int64), name))
    kept = [node for node in graph.node if not node.output[0].startswith("pooler")]
    del graph.node[:], graph.value_info[:]
    graph.node.extend([*nodes, *kept])
    for item in graph.input:
        item.type.tensor_type.shape.dim[1].dim_param = LENGTH
        if texts > 1:
            item.type.tensor_type.shape.dim[0].dim_param = TEXTS
    produced = {name for node in graph.node for name in node.output}
    outputs = [item for item in graph.output if item.name in produced]
    del graph.output[:]
    for item in outputs:
        item.type.tensor_type.ClearField("shape")
    graph.output.extend(outputs)
    return model


def _cut(name: str, axes: int, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Return the nodes that cut a table to the length of the text, and let others read what they cut out."""
    nodes, source = [], name
    for axis in range(1, axes + 1):
        inputs = [source, "any.start", "any.length", f"any.axis{axis}"]
        source = f"{source}.cut"
        nodes.append(onnx.helper.make_node("Slice", inputs, [source]))
    for node in graph.node:
        node.input[:] = [source if item == name else item for item in node.input]
    return nodes


def _extended(array: Array, positions: int) -> Array:
    """Return a table for more positions: numbers, zeros, or what is visible of a causal mask."""
    if array.ndim == 4:
        return np.tri(positions, dtype=array.dtype)[None, None]
    table: Array = (np.arange(positions) * (array.max() > 0))[None].astype(array.dtype)
    return table


def serve(contender: str, file: str, threads: int, lengths: list[int], texts: int) -> None:
    """Time calls of one contender as lines on standard input ask for."""
    from intarsia import build, from_onnx
    from intarsia.measure.inputs import random_inputs
    from intarsia.passes import bind_sizes, partition_whole
    from intarsia.target import Target

    name, _, kind = contender.partition(" ")
    target = Target(f"cpu -toolchain={name} -threads={threads}")
    module = from_onnx(file)
    bound = [bind_sizes(module, sizes_of(module, length, texts)) for length in lengths]
    inputs = [random_inputs(item["main"], 0) for item in bound]
    programs = bound if kind == "static" else [module]
    built = [build(partition_whole(item, target)) for item in programs]
    executables = built if kind == "static" else built * len(lengths)
    answer_turns(list(zip(executables, inputs, strict=True)))


def sizes_of(module: IRModule, length: int, texts: int) -> dict[str, int]:
    """Return the sizes of the dimensions of a program for texts, or pasts, of a length."""
    sizes = {LENGTH: length, TEXTS: texts}
    past = {"past_sequence_length": length, "sequence_length": 1, "batch_size": texts}
    past["past_sequence_length + sequence_length"] = length + 1
    names = {dim.name: axis for param in module["main"].params for axis, dim in _symbols(param)}
    known = sizes | past
    return {name: known.get(name, length if axis else texts) for name, axis in names.items()}


def _symbols(param: Var) -> list[tuple[int, SymbolicDim]]:
    from intarsia.ir import SymbolicDim, TensorType

    type_ = param.checked_type
    dims = type_.shape if isinstance(type_, TensorType) else None
    return [(axis, dim) for axis, dim in enumerate(dims or ()) if isinstance(dim, SymbolicDim)]


def report(model: str, path: Path, arguments: argparse.Namespace) -> None:
    """Time all contenders interleaved, and print the times relative to those of the one artifact."""
    command = [sys.executable, "-m", "benchmarks.dynamic_lengths"]
    facts = ["--threads", str(arguments.threads), "--lengths", *map(str, arguments.lengths)]
    facts += ["--texts", str(arguments.texts)]
    names = CONTENDERS if arguments.threads > 1 else ON_ONE_THREAD
    contenders = {name: Contender([*command, "--serve", name, str(path), *facts]) for name in names}
    able = [name for name in names if contenders[name].is_ready]
    print(f"\n{model}, {arguments.threads} threads: time of the other / native with one kernel")
    print(f"{'length':>8}        native      first call  " + "  ".join(f"{name:>14}" for name in able[1:]))
    ratios: dict[str, list[float]] = {name: [] for name in able[1:]}
    try:
        for number, length in enumerate(arguments.lengths):
            turns: dict[str, list[float]] = {name: [] for name in able}
            for _ in range(arguments.rounds):
                for name in able:
                    turns[name].append(contenders[name].time(number, arguments.seconds))
            times = {name: statistics.median(values) for name, values in turns.items()}
            for name, values in ratios.items():
                values.append(times[name] / times[able[0]])
            row = "  ".join(f"{values[-1]:14.3f}" for values in ratios.values())
            first = contenders[able[0]].first_calls[number] - times[able[0]]
            print(f"{length:8}  {times[able[0]] * 1e3:9.3f} ms  {first * 1e3:+9.3f} ms  {row}", flush=True)
    finally:
        for contender in contenders.values():
            contender.close()
    for name, values in ratios.items():
        mean = math.exp(statistics.fmean(map(math.log, values)))
        print(f"{name}: {mean:.3f} on average, {min(values):.3f} at least")


if __name__ == "__main__":
    main()
