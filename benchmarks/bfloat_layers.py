"""Convolutions, products and models in bfloat16 by native kernels, against OpenVINO's default precision.

Usage: python -m benchmarks.bfloat_layers [--rounds 200] [--threads 1] [--only TEXT] [--markdown]
       python -m benchmarks.bfloat_layers --model MODEL.onnx|zoo:NAME [--rounds 20] [--threads 1]

Each layer stands six times behind itself, with a Relu between, in a program from float32 to float32. Native
multiplies in bfloat16 (`-multiply_in=bfloat16`; in layers with `-convolutions=direct`, as transforms in
float32 would be faster for some). OpenVINO runs the same program as it does by default, which is in bfloat16
where the CPU has it, and in float32. Contenders take turns call by call in one process; ratios are of the
best times, with those of the first quartiles in brackets. `of peak` is native's rate over that of
`dot_bf16` with sums in registers, measured before each layer; `kernels` is the same without copies between
layouts at the borders of the program, by profile. The errors are the norm of the difference to
native's float32 over that of the result.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from benchmarks.integer_layers import best_times, ratio_text
from benchmarks.native_kernels import Array, format_table
from onnx import TensorProto, helper, numpy_helper

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.frontend.zoo_name import zoo_name
from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.native.machine.isa import Isa
from intarsia.native.peak import DotKind, measured_peak
from intarsia.passes import partition_whole
from intarsia.target import Target

REPEATS = 6
Result = Callable[[], Array]
HEADER = (
    "layer",
    "GFLOP/s",
    "of peak",
    "kernels",
    "openvino default",
    "openvino float32",
    "native float32",
    "errors",
)


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer whose input and result have one shape.

    Attributes:
        operator: Conv, MatMul, or Attention of queries that are keys and values as well.
        shape: Shape of the input and of the result.
        taps: Extent of the window of a convolution.
    """

    operator: str
    shape: tuple[int, ...]
    taps: int = 1

    @property
    def title(self) -> str:
        """Name in the table."""
        window = f" {self.taps}x{self.taps}" if self.operator == "Conv" else ""
        return f"{self.operator}{window} {'x'.join(map(str, self.shape[-3:]))}"

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        if self.operator != "Conv":
            return self.shape[-1], self.shape[-1]
        return self.shape[1], self.shape[1], self.taps, self.taps

    @property
    def operations(self) -> float:
        """Multiplications and additions of all repeats."""
        summed = self.shape[-1] if self.operator == "MatMul" else math.prod(self.weight_shape[1:])
        if self.operator == "Attention":
            summed = 2 * self.shape[-2]
        return 2.0 * REPEATS * math.prod(self.shape) * summed

    def model(self) -> onnx.ModelProto:
        """The layers as a program in float32."""
        random, last = np.random.default_rng(0), "x"
        nodes, held = [], []
        for number in range(REPEATS):
            if self.operator == "Attention":
                nodes += _attention(last, number)
                last = f"r{number}"
                continue
            summed = self.shape[-1] if self.operator == "MatMul" else math.prod(self.weight_shape[1:])
            weight = random.standard_normal(self.weight_shape) * math.sqrt(2 / summed)
            held.append(numpy_helper.from_array(weight.astype(np.float32), f"w{number}"))
            attrs = {"pads": [self.taps // 2] * 4} if self.operator == "Conv" else {}
            nodes.append(helper.make_node(self.operator, [last, f"w{number}"], [f"y{number}"], **attrs))
            nodes.append(helper.make_node("Relu", [f"y{number}"], [f"r{number}"]))
            last = f"r{number}"
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shape) for name in ("x", last)]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def _attention(last: str, number: int) -> list[onnx.NodeProto]:
    """Return softmax(x * xT) * x, which is of the same size as x, and a Relu."""
    names = [f"{letter}{number}" for letter in "tspy"]
    return [
        helper.make_node("Transpose", [last], [names[0]], perm=[0, 2, 1]),
        helper.make_node("MatMul", [last, names[0]], [names[1]]),
        helper.make_node("Softmax", [names[1]], [names[2]], axis=-1),
        helper.make_node("MatMul", [names[2], last], [names[3]]),
        helper.make_node("Relu", [names[3]], [f"r{number}"]),
    ]


LAYERS = (
    *(Layer("Conv", (1, *sizes)) for sizes in ((64, 56, 56), (128, 28, 28), (256, 14, 14), (512, 7, 7))),
    *(Layer("Conv", (1, *sizes), 3) for sizes in ((64, 56, 56), (128, 28, 28), (256, 14, 14), (512, 7, 7))),
    Layer("Conv", (1, 96, 35, 35), 3),
    *(Layer("MatMul", sizes) for sizes in ((128, 768), (197, 768), (512, 512), (64, 1024), (1, 2048))),
    *(Layer("Attention", sizes) for sizes in ((12, 128, 64), (12, 197, 64), (8, 256, 32), (6, 77, 80))),
)
"""Layers of common networks; 96 x 35 x 35, 7 x 7 and 197 rows divide no tile."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="only layers with this in their names")
    parser.add_argument("--model", help="a model with float32 inputs, in place of layers")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    if given.model:
        print(_measured_model(given))
        return
    chosen = [layer for layer in LAYERS if given.only in layer.title]
    print(format_table(HEADER, [_measured(layer, given) for layer in chosen], given.markdown))


def _measured(layer: Layer, given: argparse.Namespace) -> tuple[str, ...]:
    """Time a layer with all contenders, and return the row of the table."""
    inputs = [np.random.default_rng(1).standard_normal(layer.shape).astype(np.float32)]
    peak = measured_peak(Isa.host(), given.threads, kind=DotKind.BFLOATS)
    runs = _contenders(layer.model(), inputs, given.threads, " -convolutions=direct")
    results = {name: run() for name, run in runs.items()}
    times = best_times(runs, given.rounds)

    rate, exact = layer.operations / times["native bfloat16"][0], results["native float32"]
    errors = (_error(results[name], exact) for name in ("native bfloat16", "openvino default"))
    others = ("openvino default", "openvino float32", "native float32")
    return (
        layer.title,
        f"{rate / 1e9:.0f}",
        f"{rate / peak:.2f}",
        f"{layer.operations / _seconds_of_kernels(layer.model(), inputs, given.threads) / peak:.2f}",
        *(ratio_text(times, name, "native bfloat16") for name in others),
        " ".join(f"{error:.0e}" for error in errors),
    )


def _seconds_of_kernels(model: onnx.ModelProto, inputs: list[Array], threads: int) -> float:
    """Return the seconds of the kernels that compute the layers in bfloat16."""
    options = f" -multiply_in=bfloat16 -threads={threads} -convolutions=direct"
    executable = build(partition_whole(from_onnx(model), Target(f"cpu -toolchain=native{options}")))
    rows = executable.profile(*inputs, repeats=100).rows
    return sum(row.seconds for row in rows if row.kernel.anchor is not None)


def _measured_model(given: argparse.Namespace) -> str:
    """Time a whole model, and return the milliseconds and the error of each contender."""
    name = zoo_name(given.model)
    model = onnx.load(given.model) if name is None else build_model(name)
    module = from_onnx(model)
    inputs = list(random_inputs(module["main"], 9).values())
    runs = _contenders(model, inputs, given.threads)
    exact = runs["native float32"]()
    errors = {kind: _error(run(), exact) for kind, run in runs.items()}
    return "\n".join(
        f"{kind:17} {1e3 * best:8.2f} ms ({1e3 * more:.2f})  error {errors[kind]:.1e}"
        for kind, (best, more) in best_times(runs, given.rounds).items()
    )


def _error(found: Array, exact: Array) -> float:
    difference, wide = (array.astype(np.float64) for array in (found - exact, exact))
    return math.sqrt(float(np.square(difference).sum()) / max(float(np.square(wide).sum()), 1e-60))


def _contenders(
    model: onnx.ModelProto, inputs: list[Array], threads: int, narrow: str = ""
) -> dict[str, Result]:
    """Return a call of each contender, which returns its first result.

    Args:
        model: Model with inputs in float32.
        inputs: Its inputs.
        threads: Number of threads.
        narrow: More options of native in bfloat16.
    """
    import openvino

    module, core = from_onnx(model), openvino.Core()
    runs = {
        f"native {dtype}": _native(module, inputs, f" -multiply_in={dtype} -threads={threads}{more}")
        for dtype, more in (("bfloat16", narrow), ("float32", ""))
    }
    data = model.SerializeToString()
    for name, hints in (("default", {}), ("float32", {"INFERENCE_PRECISION_HINT": "f32"})):
        settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, **hints}
        request = core.compile_model(core.read_model(data), "CPU", settings).create_infer_request()
        runs[f"openvino {name}"] = _inferring(request, inputs)
    return runs


def _inferring(request: Any, inputs: list[Array]) -> Result:
    def run() -> Array:
        found: Array = np.asarray(request.infer(inputs)[0])
        return found

    return run


def _native(module: IRModule, inputs: list[Array], options: str) -> Result:
    executable = build(partition_whole(module, Target(f"cpu -toolchain=native{options}")))

    def run() -> Array:
        found: Any = executable(*inputs)
        first: Array = np.asarray(found[0] if isinstance(found, tuple | list) else found)
        return first

    return run


if __name__ == "__main__":
    main()
