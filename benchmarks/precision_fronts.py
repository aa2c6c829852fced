"""Latency against error: types of layers chosen jointly, layer by layer greedily, and one type for all.

Usage: python -m benchmarks.precision_fronts MODEL [MODEL ...] [--toolchain native] [--threads 1]
       [--points 5] [--rounds 30] [--calibration FILE.npz] [--output FOLDER]

A model is zoo:NAME or an .onnx file; without calibration inputs they are random. Half of the input sets give
the ranges, the error is the largest RMS error of an output on the others, as a fraction of its RMS.

uniform   float32, bfloat16 (where the CPU has it) and int8 in all layers
greedy    all layers in int8; that with the largest error alone goes back to float32, until the error is
          allowed. That is how tools with accuracy control go about it: times play no part.
joint     the fastest measured of what an integer program over float32, bfloat16 and int8 proposes, with costs
          of layers and borders that measured programs correct; greedy and uniform ones are among them

Greedy and joint get the same budgets: the error of int8 in all layers, and halves of it. All programs run on
one toolchain, interleaved; times are the shortest. FOLDER gets MODEL.json and the picture MODEL.svg.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from benchmarks.native_kernels import format_table

from intarsia.cli.arguments.model import ModelArgument
from intarsia.driver.baselines import has_bfloat16
from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.passes import AnnotateQuantization, ToMixedPrecision
from intarsia.report.front_chart import ChartPoint, front_picture
from intarsia.target import Target
from intarsia.tune.quantise.calibrate_quantization import calibrate, with_scales
from intarsia.tune.quantise.calibration_inputs import CalibrationInputs, read_calibration
from intarsia.tune.quantise.calibration_record import CalibrationRecord
from intarsia.tune.quantise.layer_choice import LayerSearch, greedy_layers
from intarsia.tune.quantise.layer_errors import layer_errors
from intarsia.tune.quantise.layer_times import precision_problem
from intarsia.tune.quantise.layer_types import LayerTypes
from intarsia.tune.quantise.metrics import Outputs
from intarsia.tune.quantise.output_error import OutputError, measure_error
from intarsia.tune.quantise.program_runner import running_program
from intarsia.tune.quantise.program_times import program_times
from intarsia.tune.quantise.quantised import in_integers, simplified_program

SETS: Final = 8
"""Number of random input sets."""

SENSITIVITY_SETS: Final = 2
HEADER: Final = ("series", "types", "ms", "error", "dB")


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a series.

    Attributes:
        series: uniform, greedy or joint.
        types: Text of the types of its layers.
        error: Error on inputs that were held back.
        seconds: Shortest time.
    """

    series: str
    types: str
    error: float
    seconds: float = 0.0


class Comparison:
    """A model with its calibration, and the errors of programs with other types."""

    def __init__(self, model: IRModule, data: CalibrationInputs) -> None:
        """Calibrate the model on half of the inputs."""
        self.simplified = simplified_program(model)
        used, self.held_back = data.split()
        self.inputs = used.inputs[0]
        annotated = AnnotateQuantization()(self.simplified)
        text = calibrate(annotated, used.inputs, "mse").text
        self.record = CalibrationRecord.from_text(text)
        self.calibrated = with_scales(annotated, self.record, "mse")
        self.errors = layer_errors(
            self.calibrated, used.inputs[:SENSITIVITY_SETS], with_bfloat16=has_bfloat16()
        )
        with running_program(self.simplified) as run:
            self._expected: list[Outputs] = [run(inputs) for inputs in self.held_back.inputs]
        self._measured: dict[LayerTypes, OutputError] = {}

    def program(self, types: LayerTypes) -> IRModule:
        """Return the program with layers in some types."""
        if len(types.bfloat16) == len(self.errors.int8):
            return ToMixedPrecision("bfloat16")(self.simplified)
        return in_integers(self.simplified, self.record, types, "mse") if types else self.simplified

    def measure(self, types: LayerTypes) -> OutputError:
        """Return the error with layers in some types; a set of types is measured once."""
        if types not in self._measured:
            with running_program(self.program(types)) as run:
                self._measured[types] = measure_error(run, self.held_back, self._expected, None)
        return self._measured[types]


def programs(
    comparison: Comparison, target: Target, points: int
) -> list[tuple[str, LayerTypes, OutputError]]:
    """Return the programs of all series, with their errors.

    Args:
        comparison: The model.
        target: Target that layers and programs are timed on.
        points: Number of budgets.
    """
    layers = frozenset(range(len(comparison.errors.int8)))
    uniform = [LayerTypes(), LayerTypes(layers)]
    if comparison.errors.bfloat16:
        uniform.append(LayerTypes(bfloat16=layers))
    rows = [("uniform", types, comparison.measure(types)) for types in uniform]
    largest = comparison.measure(LayerTypes(layers)).relative
    problem = precision_problem(comparison.calibrated, comparison.errors, target)

    def race(chosen: Sequence[LayerTypes]) -> Sequence[float]:
        return program_times(list(map(comparison.program, chosen)), target, comparison.inputs)

    search = LayerSearch(problem, comparison.measure, race)
    for number in range(points):
        budget = largest * 1.001 / 2**number
        greedy = greedy_layers(comparison.errors.int8, comparison.measure, within(budget))
        if greedy is not None:
            rows.append(("greedy", greedy, comparison.measure(greedy)))
        choice = search.best(budget, within(budget))
        if choice is not None:
            rows.append(("joint", choice.layers, choice.error))
    return list(dict.fromkeys(rows))


def within(budget: float) -> Callable[[OutputError], bool]:
    """Return the predicate of errors within a budget."""
    return lambda error: error.relative <= budget


def compare(name: str, arguments: argparse.Namespace) -> list[Program]:
    """Return the programs of all series of a model, timed."""
    model = ModelArgument.parse(name).import_model({})
    main = model["main"]
    if arguments.calibration:
        data = read_calibration(Path(arguments.calibration), main)
    else:
        data = CalibrationInputs(tuple(random_inputs(main, seed) for seed in range(SETS)))
    comparison = Comparison(model, data)
    target = Target.for_toolchain(arguments.toolchain).with_options(threads=arguments.threads)
    rows = programs(comparison, target, arguments.points)
    distinct = list(dict.fromkeys(types for _, types, _ in rows))
    mods = [comparison.program(types) for types in distinct]
    seconds = dict(zip(distinct, program_times(mods, target, data.inputs[0], arguments.rounds), strict=True))
    return [
        Program(series, types.description, error.relative, seconds[types]) for series, types, error in rows
    ]


def write(name: str, rows: Sequence[Program], toolchain: str, folder: Path) -> None:
    """Write the programs of a model as a list and as a picture."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = Path(name.removeprefix("zoo:")).stem
    (folder / f"{stem}.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    colours = {"uniform": "reference", "greedy": "openvino", "joint": toolchain}
    points = [ChartPoint(row.types, colours[row.series], row.seconds, row.error, row.series) for row in rows]
    (folder / f"{stem}.svg").write_text(front_picture(f"{stem} on {toolchain}", points))


def main() -> None:
    """Compare the models of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--toolchain", default="native")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--points", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--calibration", default="")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    for name in arguments.models:
        rows = compare(name, arguments)
        rows.sort(key=lambda row: (row.series, row.seconds))
        if arguments.output is not None:
            write(name, rows, arguments.toolchain, arguments.output)
        print(f"{name}, {arguments.toolchain}, {arguments.threads} threads")
        print(format_table(HEADER, [_cells(row) for row in rows], markdown=False))


def _cells(row: Program) -> tuple[str, ...]:
    decibels = "" if row.error <= 0 else f"{-20 * np.log10(row.error):.1f}"
    return row.series, row.types, f"{row.seconds * 1e3:.3f}", f"{row.error:.2e}", decibels


if __name__ == "__main__":
    main()
