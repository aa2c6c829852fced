"""Plant faults in the results of correct engines, and count how many the judge detects.

Usage: python -m benchmarks.judge [MODEL ...] [--seeds 2] [--random 20]

MODEL is a name of the zoo; the default is several small families and random programs. The first table has
faults planted in results of native on the first input set, all of which must be caught. A fault that changes
no element by more than the rounding noise of the model is not really wrong; it is counted and listed all the
same. The second table has candidates (`benchmarks.judge_candidates`): correct engines and other correct
algorithms, which must pass, and toolchains with a defect, which must be caught. Prints Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from benchmarks.judge_candidates import (
    ENGINES,
    PROGRAMS,
    Finding,
    engines_for,
    judge_engines,
    judge_program,
    judge_stateful_toolchains,
)

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.trials import Trial, trials_for
from intarsia.measure.whole_run import run_arrays
from intarsia.measure.work import work_of
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.support.errors import IntarsiaError

Array = npt.NDArray[Any]
Fault = Callable[[Array], Array]

FAMILIES = ("mnist", "bert_tiny", "gpt2_tiny", "squeezenet", "mobilenet_v2", "shufflenet", "lstm")


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
    # The upper half of a float32 is a bfloat16: sign, exponent, and 8 bits of mantissa with the implicit one.
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
    """Return a random chain of matrix products and activations."""
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


def _with_faults(outputs: Sequence[Array]) -> Iterator[tuple[str, list[Array]]]:
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
    """Counts of planted and caught faults, and of candidates that passed."""

    def __init__(self) -> None:
        self.planted: Counter[str] = Counter()
        self.caught: Counter[str] = Counter()
        self.honest: dict[str, bool] = {}
        self.checked: Counter[str] = Counter()
        self.passed: Counter[str] = Counter()
        self.largest = 0.0
        self.notes: list[str] = []

    def judge_model(self, name: str, module: IRModule, seed: int) -> None:
        """Judge engines and stateful toolchains on a model, and results with planted faults."""
        trials = self._make_trials(name, module, seed)
        engines = engines_for(module, work_of(module).multiply_adds)
        for finding in judge_engines(module, trials, engines):
            self.note(finding, f"{name}, seed {seed}")
        try:
            executable = build(partition_whole(module, ENGINES["native"]))
        except IntarsiaError:
            return
        with executable:
            self.check_faults(name, trials[0], run_arrays(executable, trials[0].inputs))
            for finding in judge_stateful_toolchains(executable, trials):
                self.note(finding, f"{name}, seed {seed}")

    def judge_programs(self, seed: int) -> None:
        """Judge correct and wrong algorithms for small programs, and engines on them."""
        for make in PROGRAMS:
            program = make(seed)
            trials = self._make_trials(make.__name__, program.module, seed)
            findings = (
                *judge_engines(program.module, trials, ENGINES),
                *judge_program(program, trials),
            )
            for finding in findings:
                self.note(finding, f"{make.__name__}, seed {seed}")

    def _make_trials(self, name: str, module: IRModule, seed: int) -> tuple[Trial, ...]:
        begun = time.perf_counter()
        trials = trials_for(module, random_inputs(module["main"], seed), seed=seed)
        seconds = time.perf_counter() - begun
        print(f"| {name} | {seed} | {seconds:.1f} | {trials[0].gate.reference} |", flush=True)
        return trials

    def note(self, finding: Finding, where: str) -> None:
        """Count the verdict of the judge on a candidate."""
        report = finding.report
        self.honest[finding.name] = finding.is_honest
        self.checked[finding.name] += 1
        self.passed[finding.name] += report.passed
        if finding.is_honest:
            self.largest = max(self.largest, report.excess)
        if report.passed != finding.is_honest:
            self.notes.append(f"{finding.name} on {where}: {report.message}")

    def check_faults(self, name: str, trial: Trial, outputs: Sequence[Array]) -> None:
        """Plant each fault in a result, and count whether the judge detects it."""
        for fault, changed in _with_faults(outputs):
            self.planted[fault] += 1
            if trial.gate.check(changed).passed:
                self.notes.append(f"missed: {fault} on {name}")
            else:
                self.caught[fault] += 1

    def print(self) -> None:
        """Print the tables as Markdown."""
        print("\n| fault | planted | caught |\n|---|---|---|")
        for fault, count in self.planted.items():
            print(f"| {fault} | {count} | {self.caught[fault]} |")
        print(f"| all | {self.planted.total()} | {self.caught.total()} |")
        for is_honest, header in (
            (True, "honest candidate | checks | passed"),
            (False, "wrong toolchain | checks | caught"),
        ):
            print(f"\n| {header} |\n|---|---|---|")
            counts = [self._counts(name) for name, honest in self.honest.items() if honest is is_honest]
            for name, checks, right in counts:
                print(f"| {name} | {checks} | {right} |")
            print(f"| all | {sum(row[1] for row in counts)} | {sum(row[2] for row in counts)} |")
        print(f"\nlargest share of the allowed error that an honest candidate used: {self.largest:.2f}\n")
        print("\n".join(f"* {note}" for note in self.notes))

    def _counts(self, name: str) -> tuple[str, int, int]:
        """Return a candidate, the number of its checks, and of those with the right verdict."""
        checks, passed = self.checked[name], self.passed[name]
        return name, checks, passed if self.honest[name] else checks - passed


def main(arguments: Sequence[str] | None = None) -> Table:
    """Run the command line, and return the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=FAMILIES)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--random", type=int, default=20, help="number of random programs (default 20)")
    options = parser.parse_args(arguments)
    table = Table()
    print("| model | seed | judge, s | reference result |\n|---|---|---|---|")
    for seed in range(options.seeds):
        for name in options.models:
            table.judge_model(name, from_onnx(build_model(name, seed)), seed)
        table.judge_programs(seed)
    for seed in range(options.random):
        table.judge_model(f"random {seed}", random_program(seed), seed)
    table.print()
    return table


if __name__ == "__main__":
    main()
