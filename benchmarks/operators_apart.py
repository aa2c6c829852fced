"""Operators that are far slower on one engine than on the other: where a partition can gain.

Each row is a program of one operator, which both engines run, interleaved. The time of an OpenVINO model of
one operator includes about 13 us for the call and the layout conversions of its inputs and outputs; a larger
region has them only once.
Usage: python -m benchmarks.operators_apart [--json] [--seconds S] [--least RATIO]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from intarsia.build import build
from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.timing.interleaved import time_interleaved
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target

ENGINES = ("onnxruntime", "openvino")


@dataclass(frozen=True)
class Case:
    """An operator with the shapes of its input and of its weights."""

    operator: str
    shape: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...] = ()
    attributes: Mapping[str, int | float | str | tuple[int, ...]] | None = None

    @property
    def name(self) -> str:
        """Name in the table: operator, shapes and attributes."""
        shapes = " ".join("x".join(map(str, shape)) for shape in (self.shape, *self.weights))
        options = ", ".join(f"{key} {value}" for key, value in (self.attributes or {}).items())
        return f"{self.operator} {shapes}" + (f" ({options})" if options else "")

    def module(self) -> IRModule:
        """Return the program of the operator."""
        generator = np.random.default_rng(0)
        x = Var("x", checked_type=TensorType(self.shape, DType.FLOAT32))
        constants: list[Expr] = [
            Constant(generator.uniform(0.1, 1.0, size=shape).astype(np.float32)) for shape in self.weights
        ]
        attributes: dict[str, Any] = dict(self.attributes or {})
        return IRModule.from_expr(Function((x,), call(self.operator, x, *constants, **attributes)))


SAME = {"pads": (1, 1, 1, 1)}
CASES = (
    Case("LRN", (1, 192, 55, 55), attributes={"size": 5}),
    Case("LRN", (1, 64, 55, 55), attributes={"size": 5}),
    Case("Tanh", (1, 64, 3072)),
    Case("Erf", (1, 128, 3072)),
    Case("Sigmoid", (1, 96, 56, 56)),
    Case("HardSwish", (1, 96, 56, 56)),
    Case("Mish", (1, 96, 56, 56)),
    Case("Softplus", (1, 96, 56, 56)),
    Case("Exp", (1, 96, 56, 56)),
    Case("Log", (1, 96, 56, 56)),
    Case("Sin", (1, 96, 56, 56)),
    Case("Sqrt", (1, 96, 56, 56)),
    Case("Softmax", (1, 12, 128, 128)),
    Case("LogSoftmax", (1, 12, 128, 128)),
    Case("Conv", (1, 3, 224, 224), ((64, 3, 3, 3),), SAME),
    Case("Conv", (1, 3, 224, 224), ((64, 3, 7, 7),), {"pads": (3, 3, 3, 3), "strides": (2, 2)}),
    Case("Conv", (1, 144, 56, 56), ((144, 1, 3, 3),), {**SAME, "group": 144}),
    Case("Conv", (1, 136, 28, 28), ((136, 34, 1, 1),), {"group": 4}),
    Case("Conv", (1, 64, 56, 56), ((64, 64, 3, 3),), SAME),
    Case("Conv", (1, 256, 28, 28), ((256, 256, 1, 1),)),
    Case("ConvTranspose", (1, 64, 32, 32), ((64, 3, 4, 4),), {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
    Case("ConvTranspose", (1, 256, 16, 16), ((256, 128, 4, 4),), {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
    Case("MaxPool", (1, 64, 112, 112), attributes={"kernel_shape": (3, 3), "strides": (2, 2)}),
    Case("AveragePool", (1, 64, 56, 56), attributes={"kernel_shape": (7, 7), "strides": (1, 1)}),
    Case("GlobalAveragePool", (1, 512, 28, 28)),
    Case("InstanceNormalization", (1, 64, 112, 112), ((64,), (64,))),
    Case("LayerNormalization", (1, 128, 768), ((768,), (768,))),
    Case("PRelu", (1, 64, 56, 56), ((64, 1, 1),)),
    Case("MatMul", (1, 128, 768), ((768, 3072),)),
    Case("Gemm", (1, 4096), ((4096, 4096),)),
    Case("Transpose", (1, 64, 112, 112), attributes={"perm": (0, 2, 3, 1)}),
    Case("DepthToSpace", (1, 64, 112, 112), attributes={"blocksize": 2}),
    Case("ReduceSumSquare", (1, 64, 112, 112), attributes={"keepdims": 1}),
    Case("LpNormalization", (1, 64, 56, 56), attributes={"axis": 1}),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--least", type=float, default=2.0, help="ratio from which a row is shown")
    options = parser.parse_args()
    rows = []
    for case in CASES:
        module = case.module()
        x = np.random.default_rng(1).uniform(0.1, 1.0, size=case.shape).astype(np.float32)
        runs = {name: build(partition_whole(module, Target.for_toolchain(name))) for name in ENGINES}
        calls = {name: partial(exe.run_flat, x) for name, exe in runs.items()}
        comparison = time_interleaved(
            calls, TimingPolicy(max_seconds=options.seconds, repeats=20, min_repeat_seconds=3e-3)
        )
        ratio = comparison.ratio(*ENGINES)
        seconds = [comparison.timings[name].median for name in ENGINES]
        rows.append({"operator": case.name, **dict(zip(ENGINES, seconds, strict=True)), "ratio": ratio.ratio})
        for exe in runs.values():
            exe.close()
        is_apart = max(ratio.ratio, 1 / ratio.ratio) >= options.least
        if is_apart and not options.json:
            texts = " | ".join(f"{value * 1e6:.0f}" for value in seconds)
            print(f"{case.name} | {texts} | {ratio.ratio:.2f} ({ratio.low:.2f} to {ratio.high:.2f})")
    if options.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
