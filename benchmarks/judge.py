"""Plants faults in the results of honest engines, and counts how many the judge catches.

Usage: python -m benchmarks.judge [MODEL ...] [--seeds 2] [--random 20]

MODEL is a name of the zoo; without one, several small families and random programs are taken. For each model,
seed and input set, results of onnxruntime, OpenVINO and native must pass, and every fault planted in one of
them must fail. A fault that changes no element by more than the model's own noise is no fault: it is counted
as one, and listed. Prints Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.examination import examine, examine_buffers
from intarsia.measure.judge.trials import Trial, trials_for
from intarsia.measure.whole_run import run_arrays
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target

Array = npt.NDArray[Any]
Fault = Callable[[Array], Array]

FAMILIES = ("mnist", "bert_tiny", "gpt2_tiny", "squeezenet", "mobilenet_v2", "shufflenet", "lstm")
ENGINES = ("onnxruntime", "openvino", "native")


def _zero_where(y: Array, mask: Array) -> Array:
    return np.where(mask, np.zeros_like(y), y)


def _quietest_channel(y: Array) -> Array:
    axis = 1 if y.ndim > 1 and y.shape[1] > 1 else y.ndim - 1
    sizes = np.sqrt(np.mean(y.astype(np.float64) ** 2, axis=tuple(a for a in range(y.ndim) if a != axis)))
    channel = int(np.where(sizes > 0, sizes, np.inf).argmin())
    moved = np.moveaxis(y, axis, 0)
    moved[channel] = 0
    return y


def _element(y: Array, change: Callable[[Any], Any]) -> Array:
    flat = y.reshape(-1)
    position = int(np.abs(flat).argmax())
    flat[position] = change(flat[position])
    return y


FAULTS: dict[str, Fault] = {
    "quietest channel zeroed": _quietest_channel,
    "smallest half zeroed": lambda y: _zero_where(y, np.abs(y) < np.median(np.abs(y))),
    "smallest tenth zeroed": lambda y: _zero_where(y, np.abs(y) < np.quantile(np.abs(y), 0.1)),
    "sign of the smallest tenth": lambda y: np.where(np.abs(y) < np.quantile(np.abs(y), 0.1), -y, y),
    "one element zeroed": lambda y: _element(y, lambda _: 0),
    "one element x 1.1": lambda y: _element(y, lambda v: v * np.float32(1.1)),
    "one element NaN": lambda y: _element(y, lambda _: np.nan),
    "one element infinite": lambda y: _element(y, lambda _: np.inf),
    "every 64th element x 1.01": lambda y: np.where(
        np.arange(y.size).reshape(y.shape) % 64 == 0, y * np.float32(1.01), y
    ),
    "all x 1.001": lambda y: y * np.float32(1.001),
    "all x 1.0001": lambda y: y * np.float32(1.0001),
    "offset of 1e-4 of the largest": lambda y: y + np.float32(1e-4 * np.abs(y).max()),
    "rounded to float16": lambda y: y.astype(np.float16).astype(y.dtype),
    "rounded to 8 bits of mantissa": lambda y: (y.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32),
    "flushed below 1e-3 of the largest": lambda y: _zero_where(y, np.abs(y) < 1e-3 * np.abs(y).max()),
    "white noise of 1e-3": lambda y: (
        y + np.float32(1e-3 * np.sqrt(np.mean(y.astype(np.float64) ** 2)))
        * np.random.default_rng(0).standard_normal(y.shape).astype(np.float32)
    ),
    "last eighth left out": lambda y: np.where(np.arange(y.size).reshape(y.shape) < y.size * 7 // 8, y, 0),
    "rolled by one": lambda y: np.roll(y, 1, -1) if y.shape[-1:] > (1,) else np.roll(y, 1),
    "reversed": lambda y: y.reshape(-1)[::-1].reshape(y.shape),
    "negative numbers lost": lambda y: np.maximum(y, 0) if (y < 0).any() else -y,
    "clamped at half of the largest": lambda y: np.clip(y, None, y.max() / 2) if y.max() > 0 else y * 2,
    "of type float64": lambda y: y.astype(np.float64),
    "of another shape": lambda y: y.reshape(-1, 1),
}  # fmt: skip


def random_program(seed: int) -> IRModule:
    """A random chain of products, normalisations and activations."""
    generator = np.random.default_rng(seed)
    width = int(generator.integers(16, 96))
    x = Var("x", checked_type=TensorType((int(generator.integers(2, 20)), width), DType.FLOAT32))
    value: Expr = x
    for _ in range(int(generator.integers(2, 8))):
        columns = int(generator.integers(16, 96))
        weight = generator.standard_normal((width, columns)).astype(np.float32) / np.float32(np.sqrt(width))
        value = call("MatMul", value, Constant(weight))
        kind = str(generator.choice(["Relu", "Tanh", "Sigmoid", "Softmax", "Erf", "Identity"]))
        value = call(kind, value)
        width = columns
    return IRModule.from_expr(Function((x,), value))


def _plants(outputs: Sequence[Array]) -> Iterator[tuple[str, list[Array]]]:
    for number, array in enumerate(outputs):
        if element_kind(array.dtype) is ElementKind.INTEGER and array.size:
            changed = [np.array(output) for output in outputs]
            changed[number] = np.where(changed[number] == 0, 1, 0).astype(array.dtype)
            yield "flipped integers", changed
        if array.dtype != np.float32 or array.size < 8:
            continue
        for name, fault in FAULTS.items():
            changed = [np.array(output) for output in outputs]
            with np.errstate(all="ignore"):
                changed[number] = np.asarray(fault(changed[number]))
            same = changed[number].shape == array.shape and changed[number].dtype == array.dtype
            if not same or not np.array_equal(changed[number], array, equal_nan=True):
                yield name, changed


class Table:
    """What was planted and caught, and which honest results passed."""

    def __init__(self) -> None:
        self.planted: Counter[str] = Counter()
        self.caught: Counter[str] = Counter()
        self.honest, self.passed, self.largest = 0, 0, 0.0
        self.notes: list[str] = []

    def model(self, name: str, module: IRModule, seed: int) -> None:
        """Judge one model."""
        begun = time.perf_counter()
        trials = trials_for(module, random_inputs(module["main"], seed), seed=seed)
        seconds = time.perf_counter() - begun
        print(f"| {name} | {seed} | {seconds:.1f} | {trials[0].gate.reference} |", flush=True)
        for engine in ENGINES:
            try:
                executable = build(partition_whole(module, Target.for_toolchain(engine)))
            except IntarsiaError:
                continue
            with executable:
                for report in (examine(executable, trials), examine_buffers(executable, trials)):
                    self.honest += 1
                    self.passed += report.passed
                    self.largest = max(self.largest, report.excess)
                    if not report.passed:
                        self.notes.append(f"{engine} on {name}, seed {seed}: {report.message}")
                if engine == ENGINES[-1]:
                    self.faults(name, trials[0], run_arrays(executable, trials[0].inputs))

    def faults(self, name: str, trial: Trial, outputs: Sequence[Array]) -> None:
        """Plant every fault in a result."""
        for fault, changed in _plants(outputs):
            self.planted[fault] += 1
            if trial.gate.check(changed).passed:
                self.notes.append(f"missed: {fault} on {name}")
            else:
                self.caught[fault] += 1

    def print(self) -> None:
        """Print the table as Markdown."""
        print("\n| fault | planted | caught |\n|---|---|---|")
        for fault, count in self.planted.items():
            print(f"| {fault} | {count} | {self.caught[fault]} |")
        print(f"| all | {self.planted.total()} | {self.caught.total()} |")
        print(f"\nhonest checks passed: {self.passed} of {self.honest}; largest excess {self.largest:.2f}\n")
        print("\n".join(f"* {note}" for note in self.notes))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=FAMILIES)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--random", type=int, default=20, help="random programs besides")
    options = parser.parse_args()
    table = Table()
    print("| model | seed | judge, s | reference result |\n|---|---|---|---|")
    for seed in range(options.seeds):
        for name in options.models:
            table.model(name, from_onnx(build_model(name, seed)), seed)
    for seed in range(options.random):
        table.model(f"random {seed}", random_program(seed), seed)
    table.print()


if __name__ == "__main__":
    main()
