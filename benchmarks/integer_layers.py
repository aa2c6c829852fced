"""Quantised convolutions, products and models by native kernels, against ONNX Runtime and OpenVINO.

Usage: python -m benchmarks.integer_layers [--rounds 200] [--threads 1] [--only TEXT] [--avx2] [--markdown]
       python -m benchmarks.integer_layers --model MODEL.onnx [--float32 MODEL.onnx]

Each layer stands six times behind itself, in QDQ with one scale for each channel of the weights and with
unsigned bytes between the layers, so that what engines do at the borders of a program counts little.
Contenders take turns call by call in one process; ratios are of the best times, with those of the first
quartiles in brackets. OpenVINO runs the same program. `of f32` is the time of native's own float32 kernels
over that of the integers. The error is that of native against ONNX Runtime without its optimisations, in
steps of the result; the layers before contribute to it.

With `--avx2` native gets no more than AVX2, and so does OpenVINO, by ONEDNN_MAX_CPU_ISA; ONNX Runtime has no
such switch and is left out.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from benchmarks.native_kernels import Array, Run, format_table
from onnx import TensorProto, helper, numpy_helper
from tests.emulated_cpus import CPUS

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.native.machine.isa import Isa
from intarsia.passes import partition_whole
from intarsia.target import Target

REPEATS = 6
SCALE, ZERO = np.float32(0.05), np.uint8(13)
HEADER = ("layer", "GOP/s", "onnxruntime / native", "openvino / native", "of f32", "largest error")


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer whose input and result have one shape.

    Attributes:
        operator: Conv or MatMul.
        shape: Shape of the input and of the result.
        taps: Extent of the window of a convolution.
        groups: Number of groups of a convolution; 0 for as many as there are channels.
    """

    operator: str
    shape: tuple[int, ...]
    taps: int = 1
    groups: int = 1

    @property
    def title(self) -> str:
        """Name in the table."""
        kind = {0: "depthwise ", 1: ""}.get(self.groups, f"{self.groups} groups ")
        window = f" {self.taps}x{self.taps}" if self.operator == "Conv" else ""
        return f"{kind}{self.operator}{window} {'x'.join(map(str, self.shape[-3:]))}"

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        if self.operator == "MatMul":
            return self.shape[-1], self.shape[-1]
        return self.shape[1], self.shape[1] // (self.groups or self.shape[1]), self.taps, self.taps

    @property
    def operations(self) -> float:
        """Multiplications and additions of all repeats."""
        summed = self.shape[-1] if self.operator == "MatMul" else np.prod(self.weight_shape[1:])
        return 2.0 * REPEATS * float(np.prod(self.shape)) * float(summed)

    def model(self, *, is_quantised: bool) -> onnx.ModelProto:
        """The layers as a program from bytes (float32 if not quantised) to the same."""
        random = np.random.default_rng(0)
        constants: dict[str, Array] = {"scale": np.asarray(SCALE), "zero": np.asarray(ZERO)}
        nodes, last = [], "x"
        for number in range(REPEATS):
            name = f"l{number}"
            weight = random.integers(-127, 128, self.weight_shape, np.int8)
            axis = 0 if self.operator == "Conv" else 1
            channels = self.weight_shape[axis]
            size = np.sqrt(np.prod(self.weight_shape) / channels)
            scales = random.uniform(0.5, 1, channels).astype(np.float32) / np.float32(73 * size)
            if is_quantised:
                constants |= {
                    f"{name}.w": weight,
                    f"{name}.s": scales,
                    f"{name}.z": np.zeros(channels, np.int8),
                }
                parameters = [f"{name}.{part}" for part in "wsz"]
                nodes += [
                    helper.make_node("DequantizeLinear", [last, "scale", "zero"], [f"{name}.x"]),
                    helper.make_node("DequantizeLinear", parameters, [f"{name}.v"], axis=axis),
                ]
            else:
                spread = scales.reshape([-1 if place == axis else 1 for place in range(weight.ndim)])
                constants[f"{name}.v"] = weight * spread
            attrs = self._attrs() if self.operator == "Conv" else {}
            read = [f"{name}.x" if is_quantised else last, f"{name}.v"]
            nodes.append(helper.make_node(self.operator, read, [f"{name}.y"], **attrs))
            last = f"{name}.y"
            if is_quantised:
                nodes.append(helper.make_node("QuantizeLinear", [last, "scale", "zero"], [f"{name}.q"]))
                last = f"{name}.q"
        kind = TensorProto.UINT8 if is_quantised else TensorProto.FLOAT
        ends = [helper.make_tensor_value_info(name, kind, self.shape) for name in ("x", last)]
        held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
        model: onnx.ModelProto = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9
        )
        return onnx.shape_inference.infer_shapes(model)

    def _attrs(self) -> Mapping[str, Any]:
        return {"pads": [self.taps // 2] * 4, "group": self.groups or self.shape[1]}


def _conv(channels: int, size: int, taps: int, groups: int = 1) -> Layer:
    return Layer("Conv", (1, channels, size, size), taps, groups)


LAYERS = (
    *(_conv(*sizes, 1) for sizes in ((64, 56), (128, 28), (256, 14), (512, 7), (1024, 7))),
    *(_conv(*sizes, 3) for sizes in ((64, 56), (128, 28), (256, 14), (512, 7), (96, 35))),
    *(_conv(*sizes, 3, 0) for sizes in ((96, 112), (144, 56), (384, 14), (960, 7))),
    _conv(96, 56, 7, 0),
    *(_conv(*sizes) for sizes in ((128, 56, 3, 32), (256, 28, 3, 32), (512, 14, 3, 32), (256, 14, 3, 4))),
    *(Layer("MatMul", sizes) for sizes in ((128, 768), (197, 768), (512, 512), (64, 1024), (1, 1024))),
    Layer("MatMul", (128, 765)),
)
"""Layers of common networks; 96 x 35 x 35, 7 x 7 and 197 rows divide no tile, 765 no word."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="only layers with this in their names")
    parser.add_argument("--avx2", action="store_true")
    parser.add_argument("--model", help="a quantised model with one float32 input, in place of layers")
    parser.add_argument("--float32", help="the model that it was quantised from")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    if given.avx2:
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"  # before OpenVINO is loaded
        narrow = CPUS["znver3"]
        Isa.host = classmethod(lambda _: narrow)  # type: ignore[method-assign, assignment]
    if given.model:
        print(_measured_model(given))
        return
    chosen = [layer for layer in LAYERS if given.only in layer.title]
    print(format_table(HEADER, [_measured(layer, given) for layer in chosen], given.markdown))


def best_times(runs: Mapping[str, Run], rounds: int) -> dict[str, tuple[float, float]]:
    """Return the best time and the first quartile of each contender, in seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begin)
    return {name: (min(calls), float(np.percentile(calls, 25))) for name, calls in seconds.items()}


def ratio_text(times: Mapping[str, tuple[float, float]], name: str, base: str = "native") -> str:
    """Return the best time of a contender over that of another, with the ratio of the quartiles behind it.

    Args:
        times: Times of contenders, from `best_times`.
        name: The contender; "-" is returned if it has no times.
        base: The other one.
    """
    if name not in times:
        return "-"
    best, quartile = (times[name][rank] / times[base][rank] for rank in (0, 1))
    return f"{best:.2f} ({quartile:.2f})"


def _measured(layer: Layer, given: argparse.Namespace) -> tuple[str, ...]:
    """Time a layer with all contenders, and return the row of the table."""
    random = np.random.default_rng(1)
    x = random.integers(0, 256, layer.shape, np.uint8)
    quantised = layer.model(is_quantised=True)
    native, result = _native(quantised, x, given.threads)
    floats = layer.model(is_quantised=False)
    wide, _ = _native(floats, random.standard_normal(layer.shape).astype(np.float32), given.threads)
    runs = {"native": native, "f32": wide, **_engines(quantised, x, given)}
    times = best_times(runs, given.rounds)

    exact = _unoptimised(quantised, x)
    error = np.abs(result().astype(np.int32) - exact.astype(np.int32)).max()
    rate = layer.operations / times["native"][0] / 1e9
    ratios = (ratio_text(times, name) for name in ("onnxruntime", "openvino", "f32"))
    return layer.title, f"{rate:.0f}", *ratios, str(error)


def _measured_model(given: argparse.Namespace) -> str:
    """Time a whole model, and return the milliseconds of each contender and its signal-to-noise ratio."""
    model = onnx.load(given.model)
    port = model.graph.input[0].type.tensor_type
    shape = tuple(max(1, dimension.dim_value) for dimension in port.shape.dim)
    x = np.random.default_rng(9).standard_normal(shape).astype(np.float32)
    native, result = _native(model, x, given.threads)
    runs = {"native": native, **_engines(model, x, given)}
    reference = model
    if given.float32:
        reference = onnx.load(given.float32)
        runs["native f32"], _ = _native(reference, x, given.threads)
    exact = _unoptimised(reference, x)
    error = result().astype(np.float64) - exact
    noise = 10 * np.log10(np.square(exact, dtype=np.float64).sum() / max(np.square(error).sum(), 1e-30))
    times = best_times(runs, given.rounds)
    lines = [f"{name:12} {1e3 * best:8.2f} ms ({1e3 * more:.2f})" for name, (best, more) in times.items()]
    return "\n".join(
        [*lines, f"native against {'float32' if given.float32 else 'unfused QDQ'}: {noise:.1f} dB"]
    )


def _native(model: onnx.ModelProto, x: Array, threads: int) -> tuple[Run, Callable[[], Array]]:
    """Build a model, and return a call and a call that returns its first result."""
    executable = build(partition_whole(from_onnx(model), Target.for_toolchain("native", threads=threads)))

    def result() -> Array:
        found: Any = executable(x)
        first: Array = np.asarray(found[0] if isinstance(found, tuple | list) else found)
        return first

    return lambda: executable(x), result


def _engines(model: onnx.ModelProto, x: Array, given: argparse.Namespace) -> dict[str, Run]:
    """Return a call of each engine; without spinning, which would slow down the next contender."""
    import openvino

    core, settings = openvino.Core(), {"INFERENCE_NUM_THREADS": given.threads, "NUM_STREAMS": 1}
    data = model.SerializeToString()
    request = core.compile_model(core.read_model(data), "CPU", settings).create_infer_request()
    runs: dict[str, Run] = {"openvino": lambda: request.infer([x])}
    if not given.avx2:
        session, name = _session(data, given.threads), model.graph.input[0].name
        runs["onnxruntime"] = lambda: session.run(None, {name: x})
    return runs


def _session(data: bytes, threads: int, *, is_optimised: bool = True) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.force_spinning_stop", "1")
    if not is_optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _unoptimised(model: onnx.ModelProto, x: Array) -> Array:
    """Return the first result of ONNX Runtime without its own fusion of quantised operators."""
    session = _session(model.SerializeToString(), 0, is_optimised=False)
    result: Array = session.run(None, {model.graph.input[0].name: x})[0]
    return result


if __name__ == "__main__":
    main()
