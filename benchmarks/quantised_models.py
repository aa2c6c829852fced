"""Quantised models as they come, by native kernels, against ONNX Runtime and OpenVINO.

Usage: python -m benchmarks.quantised_models [NAME ...] [--rounds 50] [--threads 1] [--markdown]

A name is one of the corpus, which `make corpus` has built, with its own inputs, or zoo:NAME, which ONNX
Runtime's static quantisation turns into QDQ (unsigned activations, signed weights by channel) with random
inputs. Without names the quantised models of the corpus are run. Contenders take turns call by call in one
process; ratios are of the best times, with those of the first quartiles in brackets. OpenVINO runs with
float32 for what is not in bytes, as native does, and by default: that is bfloat16 where the CPU has it. The
errors are the norm of the difference to ONNX Runtime without its optimisations over that of the result, of
native and of both programs of OpenVINO.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from benchmarks.integer_layers import best_times, ratio_text
from benchmarks.native_kernels import Array, Run, format_table
from benchmarks.post_training.contenders import Reader

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx, to_onnx
from intarsia.frontend.zoo import build_model
from intarsia.frontend.zoo_name import zoo_name
from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.passes import partition_whole
from intarsia.target import Target

NAMES = (
    *("dynamic_bert", "dynamic_gpt2", "fused_quantised_bert", "int4_llama", "int4_qdq_llama"),
    *("qdq_cnn", "qdq_int16_cnn", "qoperator_cnn"),
)
"""Quantised models of the corpus that native runs whole."""
ENGINES = ("onnxruntime", "openvino float32", "openvino default")
HEADER = ("model", "native ms", *ENGINES, "native float32", "errors of native and openvino")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    print(format_table(HEADER, [_measured(name, given) for name in given.names], given.markdown))


def _measured(name: str, given: argparse.Namespace) -> tuple[str, ...]:
    """Time a model with all contenders, and return the row of the table."""
    model, inputs = _from_zoo(name) if zoo_name(name) else _from_corpus(name)
    module = from_onnx(model, shapes={key: array.shape for key, array in inputs.items()})
    native = _native(module, inputs, given.threads)
    engines = _engines(model, inputs, given.threads)
    runs: dict[str, Run] = {"native": native, **engines}
    if zoo_name(name):
        floats = from_onnx(build_model(str(zoo_name(name))))
        runs["native float32"] = _native(floats, inputs, given.threads)
    compared = [native, *(run for name, run in engines.items() if name.startswith("openvino"))]
    exact = _session(model, given.threads, is_optimised=False).run(None, inputs)[0]
    times = best_times(runs, given.rounds)

    milliseconds = f"{1e3 * times['native'][0]:.3f}"
    errors = " ".join(f"{_error(_first_result(run), exact):.0e}" for run in compared)
    ratios = (ratio_text(times, contender) for contender in (*ENGINES, "native float32"))
    return name, milliseconds, *ratios, errors


def _first_result(run: Run) -> Array:
    results: Any = run()
    if isinstance(results, np.ndarray):
        return results
    first: Array = np.asarray(results[0])
    return first


def _native(module: IRModule, inputs: Mapping[str, Array], threads: int) -> Run:
    executable = build(partition_whole(module, Target.for_toolchain("native", threads=threads)))
    arrays = list(inputs.values())
    return lambda: executable(*arrays)


def _error(found: Array, exact: Array) -> float:
    difference, wide = found.astype(np.float64) - exact, exact.astype(np.float64)
    return math.sqrt(float(np.square(difference).sum()) / max(float(np.square(wide).sum()), 1e-60))


def _from_corpus(name: str) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Return a model that `make corpus` has built last, and its inputs."""
    folders = (Path.home() / ".cache/intarsia-corpus").glob(f"{name}-*/model.onnx")
    newest = max(folders, key=lambda path: path.stat().st_mtime).parent
    with np.load(newest / "inputs.npz") as arrays:
        return onnx.load(newest / "model.onnx"), {key: arrays[key] for key in arrays.files}


def _from_zoo(name: str) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Return a model of the zoo in QDQ, and random inputs."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    module = from_onnx(build_model(str(zoo_name(name))))  # its export has the opset that QDQ needs
    batches = [dict(random_inputs(module["main"], seed)) for seed in range(4)]
    with tempfile.TemporaryDirectory() as folder:
        before, ready, after = (Path(folder) / f"{step}.onnx" for step in ("before", "ready", "after"))
        onnx.save(to_onnx(module), before)
        quant_pre_process(str(before), str(ready), skip_symbolic_shape=True)
        kinds = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
        form = {"quant_format": QuantFormat.QDQ, "per_channel": True}
        left = {"nodes_to_exclude": _readers_of_shared_tables(onnx.load(ready))}
        quantize_static(str(ready), str(after), Reader(batches[1:]), **kinds, **form, **left)
        return onnx.load(after), batches[0]


def _readers_of_shared_tables(model: onnx.ModelProto) -> list[str]:
    """Return the names of Gather nodes whose table another node multiplies by.

    ONNX Runtime quantises what they give by the scales of the table's rows, which no engine takes.
    """
    reads = Counter(name for node in model.graph.node for name in node.input)
    return [node.name for node in model.graph.node if node.op_type == "Gather" and reads[node.input[0]] > 1]


def _engines(model: onnx.ModelProto, inputs: Mapping[str, Array], threads: int) -> dict[str, Run]:
    """Return a call of each engine that runs the model."""
    import openvino

    session = _session(model, threads)
    runs: dict[str, Run] = {"onnxruntime": lambda: session.run(None, inputs)}
    core, settings = openvino.Core(), {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
    for name, hints in (("float32", {"INFERENCE_PRECISION_HINT": "f32"}), ("default", {})):
        try:
            read = core.read_model(model.SerializeToString())
            request = core.compile_model(read, "CPU", settings | hints).create_infer_request()
            request.infer(dict(inputs))
        except RuntimeError as error:
            print(f"openvino: {str(error).splitlines()[0]}")
            return runs
        runs[f"openvino {name}"] = partial(request.infer, dict(inputs))
    return runs


def _session(model: onnx.ModelProto, threads: int, *, is_optimised: bool = True) -> Any:
    """Return a session without spinning, which would slow down the next contender."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.force_spinning_stop", "1")
    if not is_optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


if __name__ == "__main__":
    main()
